// The experts of a layer as one op with kernels of its own, forward and backward.
//
// The stock model sorts tokens by expert, gathers their rows, multiplies, and adds the results up:
// eight ops a layer. Here it is one. Forward also returns which row went where (the router's
// metadata), and backward reads that instead of sorting again.
//
// T tokens, k experts of a token, R = T k rows in the order of experts, E experts, D model dim, F
// hidden dim. A slot is a (token, j) pair with number t k + j.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/config/derive.h"
#include "rhea/nn/moe.h"
#include "rhea/ops/grouped/grouped.h"
#include "rhea/ops/route/route.h"
#include "rhea/ops/row.h"
#include "rhea/plugin/plugin.h"

namespace {

using namespace rhea;
using ir::Type;
using ir::Value;

// ---- arithmetic

// Sixteen partial sums: a fixed order that a compiler can put into vectors.
constexpr int64_t kLanes = 16;

float dot(const float* a, const float* b, int64_t n) {
  std::array<float, kLanes> sums{};
  for (int64_t i = 0; i < n; i += kLanes)
    for (size_t l = 0; l < kLanes; ++l)
      sums[l] += a[i + static_cast<int64_t>(l)] * b[i + static_cast<int64_t>(l)];
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

void add_scaled(float* y, float factor, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

// ---- shapes

struct Sizes {
  int64_t tokens, top_k, experts, dim, hidden;
  int64_t rows() const { return tokens * top_k; }
};

Sizes sizes_of(const Type& x_TD, const Type& w1_EFD, const Type& weights_Tk) {
  return {x_TD.shape[0], weights_Tk.shape[1], w1_EFD.shape[0], x_TD.shape[1], w1_EFD.shape[1]};
}

std::vector<Type> infer(std::span<const Type> in, const ir::Attrs&) {
  ops::expect_operands(in, {"x", "w1", "w3", "w2", "experts", "weights"});
  const Type &x = in[0], &w1 = in[1], &w2 = in[3], &experts = in[4], &weights = in[5];
  ops::expect_float(x, "x");
  if (x.rank() != 2 || w1.rank() != 3 || w1.shape[2] != x.shape[1] || in[2] != w1 ||
      w2.shape != ir::Shape{w1.shape[0], x.shape[1], w1.shape[1]} || w1.dtype != x.dtype ||
      w2.dtype != x.dtype)
    throw Error("w1 and w3 must be [E,F,D] and w2 [E,D,F] for x [T,D], got {}, {}, {} and {}",
                to_string(w1), to_string(in[2]), to_string(w2), to_string(x));
  if (experts.rank() != 2 || experts.dtype != DType::i32 || experts.shape[0] != x.shape[0] ||
      weights != Type{DType::f32, experts.shape})
    throw Error("experts and weights must be i32 and f32 [T,k], got {} and {}", to_string(experts),
                to_string(weights));
  const Sizes s = sizes_of(x, w1, weights);
  return {x, {DType::i32, {s.rows()}}, {DType::i32, experts.shape}, {DType::i32, {s.experts}}};
}

// Operands of the gradient: dy, x, w1, w3, w2, weights and the metadata slots, rows, counts.
std::vector<Type> infer_grad(std::span<const Type> in, const ir::Attrs&) {
  ops::expect_operands(in, {"dy", "x", "w1", "w3", "w2", "weights", "slots", "rows", "counts"});
  return {in[1], in[2], in[3], in[4], in[5]};
}

// ---- the same functions from Rhea's ops: what the kernels are compared with, and what runs where
// they do not

Value silu_gated(Value gate, Value up) { return gate * ops::logistic(gate) * up; }

std::vector<Value> decompose(ir::Graph&, std::span<const Value> in, const ir::Attrs&) {
  const auto order = ops::expert_order(in[4], in[1].dim(0));
  const Value x_RD = ops::dispatch(in[0], order);
  const auto times = [&](Value rows, Value w) {
    return ops::grouped_product(rows, w, order.counts_E, 1);
  };
  const Value y_RD = times(silu_gated(times(x_RD, in[1]), times(x_RD, in[2])), in[3]);
  return {ops::combine(y_RD, order, in[5]), order.slots_R, order.rows_Tk, order.counts_E};
}

std::vector<Value> decompose_grad(ir::Graph& graph, std::span<const Value> in, const ir::Attrs&) {
  const Value dy_TD = in[0], x_TD = in[1], w1 = in[2], w3 = in[3], w2 = in[4], weights_Tk = in[5];
  const ops::ExpertOrder order{in[6], in[7], Value{}, in[8]};
  const auto times = [&](Value rows, Value w, int64_t contract) {
    return ops::grouped_product(rows, w, order.counts_E, contract);
  };
  const auto weight_grad = [&](Value a, Value b, Value w) {
    return ops::convert(graph.add1(ops::kGroupedWeightGrad, {a, b, order.counts_E}), w.dtype());
  };
  const Value x_RD = ops::dispatch(x_TD, order), dy_RD = ops::dispatch(dy_TD, order, weights_Tk);
  const Value gate = times(x_RD, w1, 1), up = times(x_RD, w3, 1);
  const Value sigmoid = ops::logistic(gate), silu = gate * sigmoid, h = silu * up;
  const Value dh = times(dy_RD, w2, 0);
  const Value slope = sigmoid * ops::add(gate * (ops::add(ops::negate(sigmoid), 1)), 1);
  const Value dgate = dh * up * slope, dup = dh * silu;
  const Value dx_RD = times(dgate, w1, 0) + times(dup, w3, 0);
  const Value dweights_Tk =
      graph.add1(ops::kSlotDots, {times(h, w2, 1), dy_TD, order.slots_R, order.rows_Tk});
  return {ops::combine(dx_RD, order), weight_grad(dgate, x_RD, w1), weight_grad(dup, x_RD, w3),
          weight_grad(dy_RD, h, w2), dweights_Tk};
}

// ---- kernels in f32

// With a reason against it, the ops above run instead.
std::string accepts(const ir::OpInstance& op) {
  const Type &x = op.in[0], &w = op.in[op.in.size() == 6 ? 1 : 2];
  if (x.dtype != DType::f32) return "computes in f32 only";
  if (w.shape[1] % kLanes != 0 || w.shape[2] % kLanes != 0)
    return fmt::format("dims must be multiples of {}, got hidden {} and model {}", kLanes,
                       w.shape[1], w.shape[2]);
  return "";
}

constexpr int64_t kTokensOfAnItem = 64;

// Rows of expert e: those after the rows of the experts before it.
ops::GroupRows rows_of(const ir::Buffer& counts, int64_t e, const Sizes& s) {
  return ops::group_rows(counts.as<const int32_t>(), e, s.rows());
}

// y[t] = sum of factor * row over the rows of token t, in the order of the experts.
void sum_rows(const Sizes& s, int64_t item, const float* rows_RD, const int32_t* rows_Tk,
              const float* weights_Tk, float* y_TD) {
  std::vector<int64_t> slots(static_cast<size_t>(s.top_k));
  const int64_t end = std::min(s.tokens, (item + 1) * kTokensOfAnItem);
  for (int64_t t = item * kTokensOfAnItem; t < end; ++t) {
    for (int64_t j = 0; j < s.top_k; ++j) slots[static_cast<size_t>(j)] = t * s.top_k + j;
    std::ranges::sort(slots, {}, [&](int64_t slot) { return rows_Tk[slot]; });
    float* y = y_TD + t * s.dim;
    std::fill_n(y, s.dim, 0.0F);
    for (const int64_t slot : slots) {
      if (rows_Tk[slot] < 0) continue;
      add_scaled(y, weights_Tk == nullptr ? 1 : weights_Tk[slot], rows_RD + rows_Tk[slot] * s.dim,
                 s.dim);
    }
  }
}

// Rows by expert, in the order of their slots: a counting sort.
void sort_slots(const Sizes& s, const int32_t* experts, int32_t* slots_R, int32_t* rows_Tk,
                int32_t* counts_E) {
  const auto valid = [&](int64_t slot) { return experts[slot] >= 0 && experts[slot] < s.experts; };
  std::fill_n(counts_E, s.experts, 0);
  std::fill_n(slots_R, s.rows(), -1);
  for (int64_t slot = 0; slot < s.rows(); ++slot)
    if (valid(slot)) ++counts_E[experts[slot]];
  std::vector<int32_t> next(static_cast<size_t>(s.experts), 0);
  for (int64_t e = 1; e < s.experts; ++e)
    next[static_cast<size_t>(e)] = next[static_cast<size_t>(e - 1)] + counts_E[e - 1];
  for (int64_t slot = 0; slot < s.rows(); ++slot) {
    rows_Tk[slot] = valid(slot) ? next[static_cast<size_t>(experts[slot])]++ : -1;
    if (rows_Tk[slot] >= 0) slots_R[rows_Tk[slot]] = static_cast<int32_t>(slot);
  }
}

void forward(const ir::KernelArgs& args) {
  const Sizes& s = *static_cast<const Sizes*>(args.state);
  auto* rows_RD = static_cast<float*>(args.workspace);
  if (args.phase == 0)
    return sort_slots(s, args.in[4].as<const int32_t>(), args.out[1].as<int32_t>(),
                      args.out[2].as<int32_t>(), args.out[3].as<int32_t>());
  if (args.phase == 2) {
    for (int64_t item = args.begin; item < args.end; ++item)
      sum_rows(s, item, rows_RD, args.out[2].as<const int32_t>(), args.in[5].as<const float>(),
               args.out[0].as<float>());
    return;
  }
  auto* h = static_cast<float*>(args.scratch);
  for (int64_t e = args.begin; e < args.end; ++e) {
    const float* w1 = args.in[1].as<const float>() + e * s.hidden * s.dim;
    const float* w3 = args.in[2].as<const float>() + e * s.hidden * s.dim;
    const float* w2 = args.in[3].as<const float>() + e * s.dim * s.hidden;
    const auto rows = rows_of(args.out[3], e, s);
    for (int64_t r = rows.first; r < rows.first + rows.count; ++r) {
      const int64_t token = args.out[1].as<const int32_t>()[r] / s.top_k;
      const float* x = args.in[0].as<const float>() + token * s.dim;
      for (int64_t f = 0; f < s.hidden; ++f) {
        const float gate = dot(w1 + f * s.dim, x, s.dim);
        h[f] = gate / (1 + std::exp(-gate)) * dot(w3 + f * s.dim, x, s.dim);
      }
      for (int64_t d = 0; d < s.dim; ++d)
        rows_RD[r * s.dim + d] = dot(w2 + d * s.hidden, h, s.hidden);
    }
  }
}

// The gradients of one row, added to those of its expert; dx is written.
struct RowGrad {
  const Sizes& s;
  const float *w1, *w3, *w2;
  float *dw1, *dw3, *dw2;
  float *h, *dh, *dgate, *dup;  // scratch

  // Returns the gradient of the row's weight.
  float add(const float* x, const float* dy, float weight, float* dx) {
    std::fill_n(dh, s.hidden, 0.0F);
    for (int64_t d = 0; d < s.dim; ++d) add_scaled(dh, dy[d], w2 + d * s.hidden, s.hidden);
    for (int64_t f = 0; f < s.hidden; ++f) {
      const float gate = dot(w1 + f * s.dim, x, s.dim), up = dot(w3 + f * s.dim, x, s.dim);
      const float sigmoid = 1 / (1 + std::exp(-gate)), silu = gate * sigmoid;
      h[f] = silu * up;
      dgate[f] = weight * dh[f] * up * sigmoid * (1 + gate * (1 - sigmoid));
      dup[f] = weight * dh[f] * silu;
    }
    const float dweight = dot(dh, h, s.hidden);
    std::fill_n(dx, s.dim, 0.0F);
    for (int64_t f = 0; f < s.hidden; ++f) {
      add_scaled(dx, dgate[f], w1 + f * s.dim, s.dim);
      add_scaled(dx, dup[f], w3 + f * s.dim, s.dim);
      add_scaled(dw1 + f * s.dim, dgate[f], x, s.dim);
      add_scaled(dw3 + f * s.dim, dup[f], x, s.dim);
    }
    for (int64_t d = 0; d < s.dim; ++d) add_scaled(dw2 + d * s.hidden, weight * dy[d], h, s.hidden);
    return dweight;
  }
};

void backward(const ir::KernelArgs& args) {
  const Sizes& s = *static_cast<const Sizes*>(args.state);
  auto* rows_RD = static_cast<float*>(args.workspace);
  const auto* slots_R = args.in[6].as<const int32_t>();
  const auto* rows_Tk = args.in[7].as<const int32_t>();
  auto* dweights_Tk = args.out[4].as<float>();
  if (args.phase == 1) {
    for (int64_t item = args.begin; item < args.end; ++item)
      sum_rows(s, item, rows_RD, rows_Tk, nullptr, args.out[0].as<float>());
    const int64_t end = std::min(s.rows(), args.end * kTokensOfAnItem * s.top_k);
    for (int64_t slot = args.begin * kTokensOfAnItem * s.top_k; slot < end; ++slot)
      if (rows_Tk[slot] < 0) dweights_Tk[slot] = 0;
    return;
  }
  auto* scratch = static_cast<float*>(args.scratch);
  for (int64_t e = args.begin; e < args.end; ++e) {
    const int64_t at = e * s.hidden * s.dim;
    RowGrad grad{s,
                 args.in[2].as<const float>() + at,
                 args.in[3].as<const float>() + at,
                 args.in[4].as<const float>() + at,
                 args.out[1].as<float>() + at,
                 args.out[2].as<float>() + at,
                 args.out[3].as<float>() + at,
                 scratch,
                 scratch + s.hidden,
                 scratch + 2 * s.hidden,
                 scratch + 3 * s.hidden};
    for (float* dw : {grad.dw1, grad.dw3, grad.dw2}) std::fill_n(dw, s.hidden * s.dim, 0.0F);
    const auto rows = rows_of(args.in[8], e, s);
    for (int64_t r = rows.first; r < rows.first + rows.count; ++r) {
      const int64_t slot = slots_R[r], token = slot / s.top_k;
      dweights_Tk[slot] = grad.add(args.in[1].as<const float>() + token * s.dim,
                                   args.in[0].as<const float>() + token * s.dim,
                                   args.in[5].as<const float>()[slot], rows_RD + r * s.dim);
    }
  }
}

ir::KernelPlan plan_of(const Sizes& sizes, std::vector<int64_t> grid,
                       void (*run)(const ir::KernelArgs&)) {
  ir::KernelPlan plan;
  plan.grid = std::move(grid);
  plan.scratch_bytes = 4 * sizes.hidden * static_cast<int64_t>(sizeof(float));
  plan.workspace_bytes = sizes.rows() * sizes.dim * static_cast<int64_t>(sizeof(float));
  plan.state = std::make_shared<Sizes>(sizes);
  plan.run = run;
  plan.note = "an item per expert, then tokens";
  return plan;
}

ir::KernelPlan plan(const ir::OpInstance& op) {
  const Sizes s = sizes_of(op.in[0], op.in[1], op.in[5]);
  return plan_of(s, {1, s.experts, div_up(s.tokens, kTokensOfAnItem)}, forward);
}
ir::KernelPlan plan_grad(const ir::OpInstance& op) {
  const Sizes s = sizes_of(op.in[1], op.in[2], op.in[5]);
  return plan_of(s, {s.experts, div_up(s.tokens, kTokensOfAnItem)}, backward);
}

ir::Cost cost(const Sizes& s, double products, double bytes) {
  return {2 * products * static_cast<double>(s.rows() * s.dim * s.hidden), bytes};
}

// ---- samples: what `rhea check` and the contract test run the rows on

ir::Sample sample(std::string name, DType dtype, Sizes s, double lowest, double highest) {
  return {.name = std::move(name),
          .inputs = {ops::uniform(dtype, {s.tokens, s.dim}),
                     ops::uniform(dtype, {s.experts, s.hidden, s.dim}),
                     ops::uniform(dtype, {s.experts, s.hidden, s.dim}),
                     ops::uniform(dtype, {s.experts, s.dim, s.hidden}),
                     ops::uniform(DType::i32, {s.tokens, s.top_k}, lowest, highest),
                     ops::uniform(DType::f32, {s.tokens, s.top_k}, 0, 1)},
          .attrs = {}};
}

std::vector<ir::Sample> samples() {
  return {sample("vectors", DType::f32, {9, 2, 4, 16, 32}, 0, 3),
          sample("one_expert", DType::f32, {70, 1, 3, 32, 16}, 1, 1),
          sample("dropped", DType::f32, {7, 3, 4, 16, 16}, -1, 4),
          sample("odd_dims", DType::f32, {5, 2, 3, 7, 5}, 0, 2),
          sample("bf16", DType::bf16, {6, 2, 3, 16, 16}, 0, 2)};
}

// Slots 0, 1, ... in the order of two experts that have two tokens each.
std::vector<ir::Sample> grad_samples() {
  std::vector<ir::Sample> made;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    made.push_back(
        {.name = dtype == DType::f32 ? "vectors" : "bf16",
         .inputs = {ops::uniform(dtype, {4, 16}), ops::uniform(dtype, {4, 16}),
                    ops::uniform(dtype, {3, 32, 16}), ops::uniform(dtype, {3, 32, 16}),
                    ops::uniform(dtype, {3, 16, 32}), ops::uniform(DType::f32, {4, 1}, 0, 1),
                    ops::values(DType::i32, {4}, {1, 2, 0, 3}),
                    ops::values(DType::i32, {4, 1}, {2, 0, 1, 3}),
                    ops::values(DType::i32, {3}, {2, 0, 2})},
         .attrs = {},
         .check_vjp = false});  // a gradient of the gradient is not given
  }
  return made;
}

// ---- rows

const ir::OpDef kGrad{
    .name = "example_grouped_experts_grad",
    .infer = infer_grad,
    .decompose = decompose_grad,
    .shard =
        [](const ir::OpInstance&) {
          return std::string(
              "!t!d,!t!d,!e!f!d,!e!f!d,!e!d!f,!t!k,!r,!t!k,!e->!t!d,!e!f!d,!e!f!d,!e!d!f,!t!k");
        },
    .cpu = {{"by_expert", Isa::plain, accepts, plan_grad}},
    .cost =
        [](const ir::OpInstance& op) {
          return cost(sizes_of(op.in[1], op.in[2], op.in[5]), 8, ops::operand_and_result_bytes(op));
        },
    .samples = grad_samples,
};

// Gradients of x, the three weights and the router's weights. Experts are numbers of experts, and
// the metadata is saved for this: neither has a gradient.
std::vector<Value> vjp(const ir::VjpArgs& args) {
  const auto in = args.inputs;
  const auto grads = args.graph.add(kGrad, {{args.cotangents[0], in[0], in[1], in[2], in[3], in[5],
                                             args.outputs[1], args.outputs[2], args.outputs[3]}});
  return {grads[0], grads[1], grads[2], grads[3], Value{}, grads[4]};
}

const ir::OpDef kExperts{
    .name = "example_grouped_experts",
    .infer = infer,
    .decompose = decompose,
    .vjp = vjp,
    .shard =
        [](const ir::OpInstance&) {
          return std::string("!t!d,!e!f!d,!e!f!d,!e!d!f,!t!k,!t!k->!t!d,!r,!t!k,!e");
        },
    .cpu = {{"by_expert", Isa::plain, accepts, plan}},
    .cost =
        [](const ir::OpInstance& op) {
          return cost(sizes_of(op.in[0], op.in[1], op.in[5]), 3, ops::operand_and_result_bytes(op));
        },
    .samples = samples,
};

// ---- the module

struct KernelExperts {
  // All that a layer's routed experts do, by the op above; the weights keep their stock names.
  struct Config : nn::RoutedExperts::Config {
    Value forward(nn::Trace& trace, Value x_TD,
                  const nn::Router::Config::Result& routed) const override {
      const auto* split = inner_experts.as<nn::SplitExperts::Config>();
      if (split == nullptr || split->activation != "silu")
        throw Error("grouped_experts needs experts of three matrices with silu, got {}",
                    type_name(*inner_experts));
      const auto w = split->weights(trace);
      return trace.graph().add(kExperts, {{x_TD, w.w1_EFD, w.w3_EFD, w.w2_EDF, routed.experts_Tk,
                                           routed.weights_Tk}})[0];
    }
  };
};

}  // namespace

RHEA_PLUGIN(p) {
  p.op(kExperts);
  p.op(kGrad);
  p.override<nn::RoutedExperts::Config>(
      "grouped_experts", {.description = "experts as one op with its own kernels"},
      [](const nn::RoutedExperts::Config& stock) { return derive<KernelExperts::Config>(stock); });
}
