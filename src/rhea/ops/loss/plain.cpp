// Loss kernels for any dtype in plain C++.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rhea/base/error.h"
#include "rhea/ops/loss/loss.h"

namespace rhea::ops {
namespace {

using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
template <class T>
Wide<T> widen(T x) {
  return static_cast<Wide<T>>(x);
}

enum class Label { ignored, valid, wrong };
Label kind_of(int64_t label, int64_t vocabulary) {
  if (label == kIgnoredLabel) return Label::ignored;
  return label >= 0 && label < vocabulary ? Label::valid : Label::wrong;
}

// logsumexp of a row as (maximum, sum of exp(x - maximum)); the sum in f64, so that long rows lose
// nothing.
template <class T>
std::pair<double, double> softmax_scale(const T* row, int64_t count) {
  double max = -std::numeric_limits<double>::infinity();
  for (int64_t v = 0; v < count; ++v) max = std::max(max, static_cast<double>(widen(row[v])));
  double sum = 0;
  for (int64_t v = 0; v < count; ++v)
    sum += static_cast<double>(std::exp(widen(row[v]) - static_cast<Wide<T>>(max)));
  return {max, sum};
}

// The loss of one token; turns its row of logits into their gradient when `grad` is given (may be
// the row itself), or into that of what the logits were before they were capped.
template <class T, class G>
double token_loss(const T* row, int64_t vocabulary, int64_t label, double grad_scale, G* grad,
                  double cap = 0) {
  const Label kind = kind_of(label, vocabulary);
  if (kind == Label::ignored) {
    if (grad != nullptr) std::fill_n(grad, vocabulary, static_cast<G>(0.0F));
    return 0;
  }
  const auto [max, sum] = softmax_scale(row, vocabulary);
  const double loss = kind == Label::valid
                          ? max + std::log(sum) - static_cast<double>(widen(row[label]))
                          : std::numeric_limits<double>::quiet_NaN();
  if (grad == nullptr) return loss;
  using W = Wide<T>;
  const W factor = static_cast<W>(grad_scale / sum);
  for (int64_t v = 0; v < vocabulary; ++v) {
    W g = std::exp(widen(row[v]) - static_cast<W>(max)) * factor;
    if (v == label) g -= static_cast<W>(grad_scale);
    if (cap > 0) {
      const W tanh = widen(row[v]) / static_cast<W>(cap);
      g *= 1 - tanh * tanh;
    }
    grad[v] = static_cast<G>(g);
  }
  return loss;
}

struct Shape {
  int64_t tokens = 0, width = 0, vocabulary = 0, chunk = 0, num_chunks = 0;
  bool has_bias = false;
  double cap = 0;  // of the logits, 0 = none
};

void sum_losses(const KernelArgs& args, int64_t tokens, double scale) {
  const auto* losses = static_cast<const double*>(args.workspace);
  double sum = 0;
  for (int64_t t = 0; t < tokens; ++t) sum += losses[t];
  *args.out[0].as<float>() = static_cast<float>(scale * sum);
}

// cross_entropy. Phase 0: one token an item; phase 1 adds them in order.
template <class T>
void run_forward(const KernelArgs& args) {
  const auto& s = *static_cast<const Shape*>(args.state);
  if (args.phase == 1) return sum_losses(args, s.tokens, *args.in[2].as<float>());
  auto* losses = static_cast<double*>(args.workspace);
  for (int64_t t = args.begin; t < args.end; ++t)
    losses[t] = token_loss<T, T>(args.in[0].as<T>() + t * args.in[0].row_stride, s.vocabulary,
                                 args.in[1].as<int32_t>()[t], 0, nullptr);
}

template <class T>
void run_grad(const KernelArgs& args) {
  const auto& s = *static_cast<const Shape*>(args.state);
  const double grad_scale =
      static_cast<double>(*args.in[2].as<float>()) * static_cast<double>(*args.in[3].as<float>());
  for (int64_t t = args.begin; t < args.end; ++t)
    token_loss<T, T>(args.in[0].as<T>() + t * args.in[0].row_stride, s.vocabulary,
                     args.in[1].as<int32_t>()[t], grad_scale,
                     args.out[0].as<T>() + t * args.out[0].row_stride);
}

// linear_cross_entropy and its gradient. Workspace: one loss per token, then the logits of a chunk.
// Phases: for each chunk the tokens (logits, loss, gradient of the logits, dh), then the rows of
// dw; at the end the sum of the losses.
template <class T, bool kGrads>
void run_linear(const KernelArgs& args) {
  const auto& s = *static_cast<const Shape*>(args.state);
  const int phases_per_chunk = kGrads ? 2 : 1;
  const int64_t chunk = args.phase / phases_per_chunk;
  const double scale = *args.in[3].as<float>();
  if (chunk == s.num_chunks) return sum_losses(args, s.tokens, scale);
  using W = Wide<T>;
  auto* losses = static_cast<double*>(args.workspace);
  auto* logits = reinterpret_cast<W*>(losses + s.tokens);
  const int64_t t0 = chunk * s.chunk, count = std::min(s.chunk, s.tokens - t0);
  const T* h = args.in[0].as<T>() + t0 * s.width;
  const T* w = args.in[1].as<T>();
  const W* bias = s.has_bias ? args.in[kHeadBias].as<W>() : nullptr;
  if (args.phase % phases_per_chunk == 0) {
    const size_t dloss = kHeadBias + (s.has_bias ? 1 : 0);
    const double grad_scale = kGrads ? scale * static_cast<double>(*args.in[dloss].as<float>()) : 0;
    const W cap = static_cast<W>(s.cap);
    for (int64_t t = args.begin; t < args.end; ++t) {
      W* row = logits + t * s.vocabulary;
      for (int64_t v = 0; v < s.vocabulary; ++v) {
        W sum = 0;
        for (int64_t d = 0; d < s.width; ++d)
          sum += widen(h[t * s.width + d]) * widen(w[v * s.width + d]);
        if (bias != nullptr) sum += bias[v];
        row[v] = cap > 0 ? cap * std::tanh(sum / cap) : sum;
      }
      losses[t0 + t] = token_loss<W, W>(row, s.vocabulary, args.in[2].as<int32_t>()[t0 + t],
                                        grad_scale, kGrads ? row : nullptr, s.cap);
      if constexpr (kGrads) {
        auto* sum = static_cast<W*>(args.scratch);
        std::fill_n(sum, s.width, W{0});
        for (int64_t v = 0; v < s.vocabulary; ++v) {
          for (int64_t d = 0; d < s.width; ++d) sum[d] += row[v] * widen(w[v * s.width + d]);
        }
        T* dh = args.out[1].as<T>() + (t0 + t) * s.width;
        for (int64_t d = 0; d < s.width; ++d) dh[d] = static_cast<T>(sum[d]);
      }
    }
  } else if constexpr (kGrads) {
    for (int64_t v = args.begin; v < args.end; ++v) {
      W* dw = args.out[2].as<W>() + v * s.width;
      if (chunk == 0) std::fill_n(dw, s.width, W{0});
      W sum = 0;
      for (int64_t t = 0; t < count; ++t) {
        const W g = logits[t * s.vocabulary + v];
        for (int64_t d = 0; d < s.width; ++d) dw[d] += g * widen(h[t * s.width + d]);
        sum += g;
      }
      if (!s.has_bias) continue;
      W& dbias = args.out[3].as<W>()[v];
      dbias = chunk == 0 ? sum : dbias + sum;
    }
  }
}

using Run = void (*)(const KernelArgs&);
template <class F>
Run pick(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(bf16{});
    case DType::f16:
      return f(f16{});
    default:
      return f(double{});
  }
}

std::shared_ptr<Shape> logits_shape(const OpInstance& node) {
  auto s = std::make_shared<Shape>();
  s->tokens = node.in[0].shape[0];
  s->vocabulary = node.in[0].shape[1];
  return s;
}

KernelPlan plan_forward(const OpInstance& node) {
  auto s = logits_shape(node);
  KernelPlan plan;
  plan.grid = {s->tokens, 1};
  plan.workspace_bytes = s->tokens * 8;
  plan.run = pick(node.in[0].dtype, []<class T>(T) { return run_forward<T>; });
  plan.strided_in = 1;
  plan.state = std::move(s);
  return plan;
}

KernelPlan plan_grad(const OpInstance& node) {
  auto s = logits_shape(node);
  KernelPlan plan;
  plan.grid = {s->tokens};
  plan.run = pick(node.in[0].dtype, []<class T>(T) { return run_grad<T>; });
  plan.strided_in = 1;
  plan.strided_out = 1;
  plan.in_place = {{0, 0}};
  plan.state = std::move(s);
  return plan;
}

template <bool kGrads>
KernelPlan plan_linear(const OpInstance& node) {
  auto s = std::make_shared<Shape>();
  s->tokens = node.in[0].shape[0];
  s->width = node.in[0].shape[1];
  s->vocabulary = node.in[1].shape[0];
  s->chunk = tokens_per_chunk(s->tokens, node.attrs->i64("num_chunks"));
  s->has_bias = has_head_bias(node);
  s->cap = node.attrs->f64("cap");
  // One chunk at least: without tokens its second phase still clears dw.
  s->num_chunks = std::max<int64_t>(1, div_up(s->tokens, s->chunk));
  KernelPlan plan;
  plan.grid.clear();
  for (int64_t c = 0; c < s->num_chunks; ++c) {
    plan.grid.push_back(std::min(s->chunk, s->tokens - c * s->chunk));
    if (kGrads) plan.grid.push_back(s->vocabulary);
  }
  plan.grid.push_back(1);
  plan.scratch_bytes = s->width * 8;
  plan.workspace_bytes = s->tokens * 8 + s->chunk * s->vocabulary * 8;
  plan.run = pick(node.in[0].dtype, []<class T>(T) { return run_linear<T, kGrads>; });
  plan.state = std::move(s);
  return plan;
}

}  // namespace

ir::CpuKernel plain_cross_entropy() { return {"plain", Isa::plain, nullptr, plan_forward}; }
ir::CpuKernel plain_cross_entropy_grad() { return {"plain", Isa::plain, nullptr, plan_grad}; }
ir::CpuKernel plain_linear_cross_entropy() {
  return {"plain", Isa::plain, nullptr, plan_linear<false>};
}
ir::CpuKernel plain_linear_cross_entropy_grad() {
  return {"plain", Isa::plain, nullptr, plan_linear<true>};
}

}  // namespace rhea::ops
