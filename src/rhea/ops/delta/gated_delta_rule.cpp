// Rows gated_delta_rule and its gradient.
//
// T tokens in rows of seq_len, K key heads, N value heads, H elements of a key, V of a value
#include <array>
#include <cmath>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/ops/delta/delta.h"
#include "rhea/ops/delta/delta_kernels.h"
#include "rhea/ops/row.h"
#include "rhea/ops/row_kernels.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::Attrs;
using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;
using ir::Sample;
using ir::Type;

void check(std::span<const Type> in, const Attrs& attrs) {
  const Type &q = in[0], &v = in[2];
  const int64_t row = attrs.i64("seq_len");
  if (q.dtype != DType::f32 || q.rank() != 3 || in[1] != q || v.dtype != DType::f32 ||
      v.rank() != 3 || v.shape[0] != q.shape[0] || q.shape[1] < 1 || v.shape[1] % q.shape[1] != 0)
    throw Error("needs q, k f32 [T,K,H] and v f32 [T,N,V], N a multiple of K, got {}, {} and {}",
                to_string(q), to_string(in[1]), to_string(v));
  const Type heads{DType::f32, {v.shape[0], v.shape[1]}};
  if (in[3] != heads || in[4] != heads || in[5] != Type{DType::i32, {v.shape[0]}})
    throw Error("needs g and beta {} and positions i32 [{}], got {}, {} and {}", to_string(heads),
                v.shape[0], to_string(in[3]), to_string(in[4]), to_string(in[5]));
  if (row < 1 || q.shape[0] % row != 0)
    throw Error("{} tokens are not rows of seq_len {}", q.shape[0], row);
}

std::vector<Type> infer(std::span<const Type> in, const Attrs& attrs) {
  expect_operands(in, {"q", "k", "v", "g", "beta", "positions"});
  check(in, attrs);
  return {in[2]};
}
std::vector<Type> infer_grad(std::span<const Type> in, const Attrs& attrs) {
  expect_operands(in, {"q", "k", "v", "g", "beta", "positions", "do"});
  check(in, attrs);
  if (in[6] != in[2])
    throw Error("do must be of v's type {}, got {}", to_string(in[2]), to_string(in[6]));
  return {in[0], in[1], in[2], in[3], in[4]};
}

DeltaArgs sizes_of(std::span<const Type> in, const Attrs& attrs) {
  DeltaArgs s{};
  s.seq_len = attrs.i64("seq_len");
  s.key_heads = in[0].shape[1];
  s.value_heads = in[2].shape[1];
  s.key_dim = in[0].shape[2];
  s.value_dim = in[2].shape[2];
  return s;
}

struct State {
  DeltaArgs sizes{};
  void (*run)(const DeltaArgs&, int64_t row, int64_t key_head) = nullptr;
  bool grad = false;
};

void run(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  DeltaArgs delta = s.sizes;
  delta.q = args.in[0].as<const float>();
  delta.k = args.in[1].as<const float>();
  delta.v = args.in[2].as<const float>();
  delta.g = args.in[3].as<const float>();
  delta.beta = args.in[4].as<const float>();
  delta.positions = args.in[5].as<const int32_t>();
  delta.scratch = static_cast<float*>(args.scratch);
  if (s.grad) {
    delta.d_o = args.in[6].as<const float>();
    delta.dq = args.out[0].as<float>();
    delta.dk = args.out[1].as<float>();
    delta.dv = args.out[2].as<float>();
    delta.dg = args.out[3].as<float>();
    delta.dbeta = args.out[4].as<float>();
  } else {
    delta.o = args.out[0].as<float>();
  }
  for (int64_t item = args.begin; item < args.end; ++item)
    s.run(delta, item / delta.key_heads, item % delta.key_heads);
}

KernelPlan plan(const OpInstance& op, Isa isa) {
  constexpr decltype(&isa_plain::delta_forward) forward[] = RHEA_PER_ISA(delta_forward);
  constexpr decltype(&isa_plain::delta_backward) backward[] = RHEA_PER_ISA(delta_backward);
  auto state = std::make_shared<State>();
  const DeltaArgs& sizes = state->sizes = sizes_of(op.in, *op.attrs);
  state->grad = op.op == &kGatedDeltaRuleGrad;
  state->run = (state->grad ? backward : forward)[vector_isa(isa)];
  KernelPlan plan;
  plan.grid = {op.in[0].shape[0] / sizes.seq_len * sizes.key_heads};
  plan.scratch_bytes =
      4 * (state->grad ? delta_grad_scratch(sizes.seq_len, sizes.key_dim, sizes.value_dim)
                       : delta_scratch(sizes.key_dim, sizes.value_dim));
  plan.note = "a row of one key head an item, token by token";
  plan.state = std::move(state);
  plan.run = run;
  return plan;
}

// ---- definition: every state is kept
struct Scan {
  const ir::ReferenceArgs& args;
  DeltaArgs s = sizes_of(args.in_types, args.attrs);
  int64_t size = s.key_dim * s.value_dim;

  double in(size_t operand, int64_t i) const { return args.in[operand][static_cast<size_t>(i)]; }
  int64_t key(int64_t t, int64_t n) const {
    return (t * s.key_heads + n / (s.value_heads / s.key_heads)) * s.key_dim;
  }
  int64_t value(int64_t t, int64_t n) const { return (t * s.value_heads + n) * s.value_dim; }
  bool anew(int64_t t) const { return t % s.seq_len == 0 || in(5, t) == 0; }

  // The decayed state, and v - S^T k.
  void step(int64_t t, int64_t n, const double* before, std::vector<double>& decayed,
            std::vector<double>& raw) const {
    const double factor = anew(t) ? 0 : std::exp(in(3, t * s.value_heads + n));
    for (int64_t i = 0; i < size; ++i)
      decayed[static_cast<size_t>(i)] = anew(t) ? 0 : factor * before[i];
    for (int64_t j = 0; j < s.value_dim; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < s.key_dim; ++i)
        sum += decayed[static_cast<size_t>(i * s.value_dim + j)] * in(1, key(t, n) + i);
      raw[static_cast<size_t>(j)] = in(2, value(t, n) + j) - sum;
    }
  }
  // The states of value head n: before token t at t * size, for all tokens and after the last.
  std::vector<double> states(int64_t n) const {
    const int64_t tokens = args.in_types[0].shape[0];
    std::vector<double> all(static_cast<size_t>((tokens + 1) * size)),
        decayed(static_cast<size_t>(size)), raw(static_cast<size_t>(s.value_dim));
    for (int64_t t = 0; t < tokens; ++t) {
      step(t, n, all.data() + t * size, decayed, raw);
      const double beta = in(4, t * s.value_heads + n);
      for (int64_t i = 0; i < size; ++i)
        all[static_cast<size_t>((t + 1) * size + i)] =
            decayed[static_cast<size_t>(i)] +
            in(1, key(t, n) + i / s.value_dim) * beta * raw[static_cast<size_t>(i % s.value_dim)];
    }
    return all;
  }
};

void reference(const ir::ReferenceArgs& args) {
  const Scan scan{args};
  for (int64_t n = 0; n < scan.s.value_heads; ++n) {
    const auto states = scan.states(n);
    for (int64_t t = 0; t < args.in_types[0].shape[0]; ++t) {
      for (int64_t i = 0; i < scan.size; ++i)
        args.out[0][static_cast<size_t>(scan.value(t, n) + i % scan.s.value_dim)] +=
            states[static_cast<size_t>((t + 1) * scan.size + i)] *
            scan.in(0, scan.key(t, n) + i / scan.s.value_dim);
    }
  }
}

void reference_grad(const ir::ReferenceArgs& args) {
  const Scan scan{args};
  const int64_t v = scan.s.value_dim, size = scan.size;
  std::vector<double> decayed(static_cast<size_t>(size)), raw(static_cast<size_t>(v));
  for (int64_t n = 0; n < scan.s.value_heads; ++n) {
    const auto states = scan.states(n);
    std::vector<double> ds(static_cast<size_t>(size));  // cotangent of the state
    for (int64_t t = args.in_types[0].shape[0]; t-- > 0;) {
      const int64_t at = t * scan.s.value_heads + n, key = scan.key(t, n), value = scan.value(t, n);
      const double beta = scan.in(4, at);
      scan.step(t, n, states.data() + t * size, decayed, raw);
      std::vector<double> d_delta(static_cast<size_t>(v));
      for (int64_t i = 0; i < size; ++i) {
        const auto element = static_cast<size_t>(i), j = static_cast<size_t>(i % v);
        const int64_t row = key + i / v;
        const double d_o = scan.in(6, value + i % v);
        args.out[0][static_cast<size_t>(row)] +=
            states[static_cast<size_t>((t + 1) * size + i)] * d_o;
        ds[element] += scan.in(0, row) * d_o;
        d_delta[j] += ds[element] * scan.in(1, row);
      }
      double dg = 0;
      for (int64_t i = 0; i < size; ++i) {
        const auto element = static_cast<size_t>(i), j = static_cast<size_t>(i % v);
        const int64_t row = key + i / v;
        args.out[1][static_cast<size_t>(row)] +=
            ds[element] * beta * raw[j] - decayed[element] * beta * d_delta[j];
        ds[element] -= scan.in(1, row) * beta * d_delta[j];
        dg += ds[element] * decayed[element];
        ds[element] = scan.anew(t) ? 0 : ds[element] * std::exp(scan.in(3, at));
      }
      for (int64_t j = 0; j < v; ++j) {
        const auto element = static_cast<size_t>(j);
        args.out[2][static_cast<size_t>(value + j)] = beta * d_delta[element];
        args.out[4][static_cast<size_t>(at)] += d_delta[element] * raw[element];
      }
      args.out[3][static_cast<size_t>(at)] = scan.anew(t) ? 0 : dg;
    }
  }
}

std::vector<Value> vjp(const ir::VjpArgs& args) {
  std::vector<Value> result(6);
  if (!args.cotangents[0].valid()) return result;
  std::vector<Value> operands(args.inputs.begin(), args.inputs.end());
  operands.push_back(args.cotangents[0]);
  const auto grads = args.graph.add(kGatedDeltaRuleGrad, operands, args.attrs);
  std::copy(grads.begin(), grads.end(), result.begin());
  return result;
}

std::vector<Sample> samples(bool grad) {
  std::vector<Sample> all;
  const auto add = [&](std::string name, int64_t rows, int64_t row, int64_t keys, int64_t heads,
                       int64_t h, int64_t v, int64_t document) {
    const int64_t t = rows * row;
    std::vector<double> positions;
    for (int64_t i = 0; i < t; ++i)
      positions.push_back(static_cast<double>(i % row % document + (i % row < document ? 2 : 0)));
    Sample s{.name = std::move(name),
             .inputs = {uniform(DType::f32, {t, keys, h}, -0.7, 0.7),
                        uniform(DType::f32, {t, keys, h}, -0.7, 0.7),
                        uniform(DType::f32, {t, heads, v}), uniform(DType::f32, {t, heads}, -1, 0),
                        uniform(DType::f32, {t, heads}, 0, 1), values(DType::i32, {t}, positions)},
             .attrs = {{"seq_len", row}},
             // Rounding errors of a token are carried on to all that follow.
             .tolerance_scale = 8,
             .check_vjp = t * heads * v <= 200};
    if (grad) s.inputs.push_back(uniform(DType::f32, {t, heads, v}));
    all.push_back(std::move(s));
  };
  add("documents", 2, 7, 1, 2, 3, 4, 3);
  add("key_heads", 1, 5, 2, 4, 2, 3, 9);
  add("one_token", 1, 1, 1, 1, 2, 2, 1);
  add("long", 2, 50, 2, 4, 16, 24, 31);
  return all;
}

std::function<ir::Cost(const OpInstance&)> cost(double flops) {
  return [flops](const OpInstance& op) {
    return ir::Cost{flops * static_cast<double>(num_elements(op.in[2].shape) * op.in[0].shape[2]),
                    operand_and_result_bytes(op)};
  };
}

}  // namespace

const OpDef kGatedDeltaRule{
    .name = "gated_delta_rule",
    .attrs = {{"seq_len", AttrKind::i64, {}}},
    .infer = infer,
    .vjp = vjp,
    .shard =
        [](const OpInstance&) { return std::string("!t!k!h,!t!k!h,!t!nv,!t!n,!t!n,!t->!t!nv"); },
    .cpu = kernels_per_isa("scan", plan),
    .cost = cost(7),
    .samples = [] { return samples(false); },
    .reference = reference,
};

const OpDef kGatedDeltaRuleGrad{
    .name = "gated_delta_rule_grad",
    .attrs = {{"seq_len", AttrKind::i64, {}}},
    .infer = infer_grad,
    .shard =
        [](const OpInstance&) {
          return std::string(
              "!t!k!h,!t!k!h,!t!n!v,!t!n,!t!n,!t,!t!n!v->!t!k!h,!t!k!h,!t!n!v,!t!n,!t!n");
        },
    .cpu = kernels_per_isa("scan", plan),
    .cost = cost(24),
    .samples = [] { return samples(true); },
    .reference = reference_grad,
};

Value gated_delta_rule(Value q_TKH, Value k_TKH, Value v_TNV, Value g_TN, Value beta_TN,
                       Value positions_T, int64_t seq_len, Where where) {
  return q_TKH.graph->add1(kGatedDeltaRule, {q_TKH, k_TKH, v_TNV, g_TN, beta_TN, positions_T},
                           {{"seq_len", seq_len}}, where);
}

}  // namespace rhea::ops
