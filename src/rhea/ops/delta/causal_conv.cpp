// Rows causal_conv and causal_conv_grad.      T tokens, C channels, W taps
#include <algorithm>
#include <array>
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

constexpr int64_t kTokensPerItem = 64, kChannelsPerItem = 64;

void check(std::span<const Type> in, const Attrs& attrs) {
  const int64_t row = attrs.i64("seq_len");
  if (in[0].dtype != DType::f32 || in[0].rank() != 2 || in[1].dtype != DType::f32 ||
      in[1].rank() != 2 || in[1].shape[0] != in[0].shape[1] || in[1].shape[1] < 1)
    throw Error("needs x f32 [T,C] and w f32 [C,W], got {} and {}", to_string(in[0]),
                to_string(in[1]));
  if (in[2] != Type{DType::i32, {in[0].shape[0]}})
    throw Error("positions must be i32 [T] with T = {}, got {}", in[0].shape[0], to_string(in[2]));
  if (row < 1 || in[0].shape[0] % row != 0)
    throw Error("{} tokens are not rows of seq_len {}", in[0].shape[0], row);
}

std::vector<Type> infer(std::span<const Type> in, const Attrs& attrs) {
  expect_operands(in, {"x", "w", "positions"});
  check(in, attrs);
  return {in[0]};
}
std::vector<Type> infer_grad(std::span<const Type> in, const Attrs& attrs) {
  expect_operands(in, {"x", "w", "positions", "dy"});
  check(in, attrs);
  if (in[3] != in[0])
    throw Error("dy must be of x's type {}, got {}", to_string(in[0]), to_string(in[3]));
  return {in[0], in[1]};
}

struct State {
  ConvArgs sizes{};
  int64_t tokens = 0;
  void (*forward)(const ConvArgs&, int64_t, int64_t) = nullptr;
  void (*backward)(const ConvArgs&, int64_t, int64_t, int64_t) = nullptr;
};

ConvArgs bound(const KernelArgs& args) {
  ConvArgs conv = static_cast<const State*>(args.state)->sizes;
  conv.x = args.in[0].as<const float>();
  conv.w = args.in[1].as<const float>();
  conv.positions = args.in[2].as<const int32_t>();
  conv.scratch = static_cast<float*>(args.scratch);
  return conv;
}

void run(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  ConvArgs conv = bound(args);
  conv.y = args.out[0].as<float>();
  s.forward(conv, args.begin * kTokensPerItem, std::min(s.tokens, args.end * kTokensPerItem));
}

void run_grad(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  ConvArgs conv = bound(args);
  conv.dy = args.in[3].as<const float>();
  conv.dx = args.out[0].as<float>();
  conv.dw = args.out[1].as<float>();
  for (int64_t item = args.begin; item < args.end; ++item)
    s.backward(conv, s.tokens, item * kChannelsPerItem,
               std::min(conv.channels, (item + 1) * kChannelsPerItem));
}

KernelPlan plan(const OpInstance& op, Isa isa) {
  constexpr decltype(&isa_plain::conv_tokens) forward[] = RHEA_PER_ISA(conv_tokens);
  constexpr decltype(&isa_plain::conv_grad_channels) backward[] = RHEA_PER_ISA(conv_grad_channels);
  auto state = std::make_shared<State>();
  state->tokens = op.in[0].shape[0];
  state->sizes.channels = op.in[0].shape[1];
  state->sizes.taps = op.in[1].shape[1];
  state->sizes.seq_len = op.attrs->i64("seq_len");
  state->forward = forward[vector_isa(isa)];
  state->backward = backward[vector_isa(isa)];
  const bool grad = op.op == &kCausalConvGrad;
  KernelPlan plan;
  plan.grid = {grad ? div_up(state->sizes.channels, kChannelsPerItem)
                    : div_up(state->tokens, kTokensPerItem)};
  plan.scratch_bytes = 2 * state->sizes.taps * kChannelsPerItem * 4;
  plan.run = grad ? run_grad : run;
  plan.state = std::move(state);
  return plan;
}

// Calls f(t, lag) for every pair of tokens that meet.
template <class F>
void for_each_lag(const ir::ReferenceArgs& args, const F& f) {
  const int64_t row = args.attrs.i64("seq_len"), taps = args.in_types[1].shape[1];
  for (int64_t t = 0; t < args.in_types[0].shape[0]; ++t) {
    for (int64_t lag = 0; lag < taps && lag <= t % row; ++lag) {
      if (static_cast<double>(lag) <= args.in[2][static_cast<size_t>(t)]) f(t, lag);
    }
  }
}

void reference(const ir::ReferenceArgs& args) {
  const int64_t channels = args.in_types[0].shape[1], taps = args.in_types[1].shape[1];
  for_each_lag(args, [&](int64_t t, int64_t lag) {
    for (int64_t c = 0; c < channels; ++c)
      args.out[0][static_cast<size_t>(t * channels + c)] +=
          args.in[1][static_cast<size_t>(c * taps + taps - 1 - lag)] *
          args.in[0][static_cast<size_t>((t - lag) * channels + c)];
  });
}

void reference_grad(const ir::ReferenceArgs& args) {
  const int64_t channels = args.in_types[0].shape[1], taps = args.in_types[1].shape[1];
  for_each_lag(args, [&](int64_t t, int64_t lag) {
    for (int64_t c = 0; c < channels; ++c) {
      const auto x = static_cast<size_t>((t - lag) * channels + c),
                 w = static_cast<size_t>(c * taps + taps - 1 - lag);
      const double dy = args.in[3][static_cast<size_t>(t * channels + c)];
      args.out[0][x] += args.in[1][w] * dy;
      args.out[1][w] += args.in[0][x] * dy;
    }
  });
}

std::vector<Value> vjp(const ir::VjpArgs& args) {
  if (!args.cotangents[0].valid()) return {Value{}, Value{}, Value{}};
  const auto grads = args.graph.add(
      kCausalConvGrad,
      std::array{args.inputs[0], args.inputs[1], args.inputs[2], args.cotangents[0]}, args.attrs);
  return {grads[0], grads[1], Value{}};
}

std::vector<Sample> samples(bool grad) {
  std::vector<Sample> all;
  const auto add = [&](std::string name, int64_t rows, int64_t row, int64_t channels, int64_t taps,
                       std::vector<double> positions) {
    const int64_t tokens = rows * row;
    Sample s{
        .name = std::move(name),
        .inputs = {uniform(DType::f32, {tokens, channels}), uniform(DType::f32, {channels, taps}),
                   values(DType::i32, {tokens}, std::move(positions))},
        .attrs = {{"seq_len", row}}};
    if (grad) s.inputs.push_back(uniform(DType::f32, {tokens, channels}));
    all.push_back(std::move(s));
  };
  add("documents", 2, 7, 5, 4, {0, 1, 2, 3, 0, 1, 0, 3, 4, 0, 1, 2, 3, 4});
  add("one_tap", 1, 3, 2, 1, {0, 1, 2});
  add("more_taps_than_tokens", 1, 2, 3, 5, {0, 1});
  std::vector<double> long_row;
  for (int i = 0; i < 90; ++i) long_row.push_back(i % 37);
  add("blocks", 1, 90, 70, 4, long_row);
  return all;
}

std::function<ir::Cost(const OpInstance&)> cost(double flops) {
  return [flops](const OpInstance& op) {
    return ir::Cost{flops * static_cast<double>(num_elements(op.in[0].shape) * op.in[1].shape[1]),
                    operand_and_result_bytes(op)};
  };
}

}  // namespace

const OpDef kCausalConv{
    .name = "causal_conv",
    .attrs = {{"seq_len", AttrKind::i64, {}}},
    .infer = infer,
    .vjp = vjp,
    .shard = [](const OpInstance&) { return std::string("!tc,c!w,!t->!tc"); },
    .cpu = kernels_per_isa("taps", plan),
    .cost = cost(2),
    .samples = [] { return samples(false); },
    .reference = reference,
};

const OpDef kCausalConvGrad{
    .name = "causal_conv_grad",
    .attrs = {{"seq_len", AttrKind::i64, {}}},
    .infer = infer_grad,
    .shard = [](const OpInstance&) { return std::string("!tc,c!w,!t,!tc->!tc,c!w"); },
    .cpu = kernels_per_isa("taps", plan),
    .cost = cost(4),
    .samples = [] { return samples(true); },
    .reference = reference_grad,
};

Value causal_conv(Value x_TC, Value w_CW, Value positions_T, int64_t seq_len, Where where) {
  return x_TC.graph->add1(kCausalConv, {x_TC, w_CW, positions_T}, {{"seq_len", seq_len}}, where);
}

}  // namespace rhea::ops
