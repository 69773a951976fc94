// Products of the experts of a layer beside one product of the same total size: 4096 tokens, 64
// experts, 4 of each token, the sizes of Qwen3-30B-A3B.
#include <fmt/core.h>

#include "bench/kernels/case.h"
#include "rhea/ops/grouped/grouped.h"

namespace rhea::bench {
namespace {

using ir::Layout;

constexpr int64_t kExperts = 64, kRows = 4096 * 4;

// 192 to 319 rows an expert, 256 on average.
double rows_of_expert(int64_t e) {
  const auto spread = static_cast<double>(e / 2 * 13 % 64);
  return static_cast<double>(kRows / kExperts) + (e % 2 == 0 ? spread : -spread);
}

void add_matrix(DType t, const char* name, int64_t n, int64_t k) {
  const std::string end = fmt::format("{}/{}", dtype_name(t), name);
  const Operand counts{{DType::i32, {kExperts}}, rows_of_expert};
  const auto grouped = [&](const char* what, ir::Type x, ir::Type w, int64_t contract,
                           const char* instead = "") {
    add_case({.name = fmt::format("experts/{}/{}", what, end),
              .op = &ops::kGroupedProduct,
              .operands = {{std::move(x)}, {std::move(w)}, counts},
              .attrs = {{"rhs_contract", contract}},
              .instead = instead});
  };
  const auto dense = [&](const char* what, ir::Type a, ir::Type b, int64_t lhs, int64_t rhs,
                         DType result) {
    add_case({.name = fmt::format("experts/dense_{}/{}", what, end),
              .op = &ops::kDotGeneral,
              .operands = {{std::move(a)}, {std::move(b)}},
              .attrs = {{"lhs_contract", lhs}, {"rhs_contract", rhs}, {"dtype", result}},
              .instead = "products of experts"});
  };
  const ir::Type x{t, {kRows, k}}, dy{t, {kRows, n}}, w{t, {kExperts, n, k}};
  const auto packed = [](ir::Type type, Layout layout) {
    type.layout = layout;
    return type;
  };
  grouped("forward_packed", x, packed(w, Layout::panels_nk), 1);
  dense("forward_packed", x, {t, {n, k}, Layout::panels_nk}, 1, 1, t);
  const bool packs_kn = t == DType::bf16;
  grouped("input_gradient_packed", dy, packed(w, Layout::panels_kn), 0,
          packs_kn ? "" : "input_gradient");
  grouped("input_gradient", dy, w, 0, packs_kn ? "input_gradient_packed" : "");
  dense("input_gradient_packed", dy, {t, {n, k}, Layout::panels_kn}, 1, 0, t);
  add_case({.name = fmt::format("experts/weight_gradient/{}", end),
            .op = &ops::kGroupedWeightGrad,
            .operands = {{dy}, {x}, counts}});
  dense("weight_gradient", dy, x, 0, 0, DType::f32);
}

}  // namespace

void add_experts() {
  for (const DType t : {DType::bf16, DType::f32}) {
    add_matrix(t, "gate", 768, 2048);
    add_matrix(t, "down", 2048, 768);
  }
}

}  // namespace rhea::bench
