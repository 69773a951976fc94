// The table of shares.
#include "rhea/step_time.h"

#include <algorithm>
#include <array>

namespace rhea {
namespace {

struct OpShare {
  std::string_view op;
  double bf16, f32;  // by the dtype of the first operand
};

// Ops of heads: heads of at most 16 dims cost more per flop.
constexpr std::array kSmallHeads = {
    OpShare{"attention", 0.39, 0.64},
    OpShare{"attention_grad", 0.48, 0.65},
    OpShare{"rope", 0.085, 0.19},
};

constexpr std::array kShares = {
    OpShare{"dot_general", 0.87, 0.88},
    OpShare{"weight_grad_squares", 0.81, 0.81},
    OpShare{"weight_grad_add", 0.81, 0.81},
    OpShare{"grouped_product", 0.84, 0.81},
    OpShare{"grouped_weight_grad", 0.84, 0.81},
    OpShare{"linear_cross_entropy_grad", 0.79, 0.84},
    OpShare{"linear_cross_entropy", 0.79, 0.84},
    OpShare{"attention", 0.63, 0.7},
    OpShare{"attention_grad", 0.69, 0.71},
    OpShare{"adam", 0.8, 0.8},
    OpShare{"adam_pack", 0.55, 0.55},
    OpShare{"global_norm", 0.5, 0.5},
    OpShare{"rms_norm", 0.2, 0.38},
    OpShare{"rms_norm_grad", 0.17, 0.35},
    OpShare{"swiglu", 0.22, 0.6},
    OpShare{"swiglu_grad", 0.24, 0.9},
    OpShare{"rope", 0.38, 0.6},
    OpShare{"embedding_grad", 0.5, 0.35},
    OpShare{"embedding", 0.3, 0.3},
    OpShare{"add", 0.55, 0.85},
};
constexpr OpShare kOther = {"", 0.5, 0.7};  // elementwise passes

constexpr int64_t kSmallHead = 16;
// Waking the pool; what a call costs beside its work.
constexpr double kCallSeconds = 1e-6;

double share_of(const exec::cpu::NodeReport& node) {
  const auto find = [&](const auto& table) {
    return std::ranges::find(table, std::string_view(node.op), &OpShare::op);
  };
  OpShare share = kOther;
  if (const auto found = find(kShares); found != kShares.end()) share = *found;
  const bool small = node.type.rank() == 3 && node.type.shape[2] <= kSmallHead;
  if (const auto found = find(kSmallHeads); small && found != kSmallHeads.end()) share = *found;
  return node.type.dtype == DType::bf16 ? share.bf16 : share.f32;
}

}  // namespace

double predicted_seconds(const exec::cpu::NodeReport& node, const exec::cpu::Limits& limits) {
  return exec::cpu::seconds_at_limit(node, limits) / share_of(node) + kCallSeconds;
}

}  // namespace rhea
