// A gated activation from outside, for my_kernels.cpp and for wrong_backward.cpp, which takes it
// with an error in its backward.
//
// T tokens, F hidden dim
#pragma once
#include <cmath>

#include "rhea/nn/feed_forward.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"
#include "rhea/plugin/plugin.h"

namespace my {

using rhea::DType;
using rhea::ir::OpInstance;
using rhea::ir::Value;

// y = silu(gate) * up in one pass. The second result, silu(gate), is saved for the backward, which
// then needs no division: silu' = s + silu (1 - s) with s = logistic(gate).
template <int backward_percent = 100>
rhea::ir::OpDef gated_row(std::string_view name) {
  return {
      .name = name,
      .infer =
          [](std::span<const rhea::ir::Type> in, const rhea::ir::Attrs&) {
            rhea::ops::expect_operands(in, {"gate", "up"});
            rhea::ops::expect_same_types(in);
            rhea::ops::expect_float(in[0], "gate");
            return std::vector{in[0], in[0]};
          },
      // What it means, and what runs where no kernel accepts: here in bf16.
      .decompose = [](rhea::ir::Graph&, std::span<const Value> in,
                      const rhea::ir::Attrs&) -> std::vector<Value> {
        const Value silu = rhea::ops::silu(in[0]);
        return {silu * in[1], silu};
      },
      .vjp = [](const rhea::ir::VjpArgs& args) -> std::vector<Value> {
        // In f32, rounded once, as the ops of the library do.
        const DType dtype = args.inputs[0].dtype();
        const Value s = rhea::ops::logistic(rhea::ops::widen(args.inputs[0]));
        const Value silu = rhea::ops::widen(args.outputs[1]);
        const Value dy = rhea::ops::widen(args.cotangents[0]);
        const Value dgate = dy * rhea::ops::widen(args.inputs[1]) * (s + silu - silu * s);
        return {rhea::ops::convert(rhea::ops::multiply(dgate, backward_percent / 100.0), dtype),
                rhea::ops::convert(dy * silu, dtype)};
      },
      // A split of either dim splits everything.
      .shard = [](const OpInstance&) { return std::string("tf,tf->tf,tf"); },
      .cpu = {rhea::ops::to_cpu_kernel(
          {.name = "one_pass",
           .accepts =
               [](const OpInstance& node) {
                 return node.in[0].dtype == DType::f32 ? "" : "computes in f32 only";
               },
           .items = [](const OpInstance& node) { return node.in[0].shape[0]; },
           .run =
               [](const rhea::ir::KernelArgs& args, const OpInstance& node) {
                 const int64_t width = node.in[0].shape[1];
                 const auto *gate = args.in[0].as<const float>(),
                            *up = args.in[1].as<const float>();
                 auto *y = args.out[0].as<float>(), *silu = args.out[1].as<float>();
                 for (int64_t i = args.begin * width; i < args.end * width; ++i) {
                   silu[i] = gate[i] / (1 + std::exp(-gate[i]));
                   y[i] = silu[i] * up[i];
                 }
               }})},
      .samples = []() -> std::vector<rhea::ir::Sample> {
        const auto sample = [](std::string of, DType dtype, rhea::ir::Shape shape) {
          return rhea::ir::Sample{
              .name = std::move(of),
              .inputs = {rhea::ops::uniform(dtype, shape), rhea::ops::uniform(dtype, shape)}};
        };
        return {sample("f32", DType::f32, {7, 19}), sample("bf16", DType::bf16, {3, 32})};
      },
  };
}

// The feed-forward with `op` between its projections.
template <const rhea::ir::OpDef* op>
struct GatedFeedForward {
  struct Config : rhea::nn::FeedForward::Config {
    Value forward(rhea::nn::Trace& trace, Value x_TD) const override {
      const Value gate_TF = rhea::nn::call(trace, names->w1, *w1, x_TD);
      const Value up_TF = rhea::nn::call(trace, names->w3, *w3, x_TD);
      const Value y_TF = trace.graph().add(*op, {{gate_TF, up_TF}})[0];
      return rhea::nn::call(trace, names->w2, *w2, y_TF);
    }
  };
};

template <const rhea::ir::OpDef* op>
void add_feed_forward(rhea::plugin::Plugin& p, std::string_view name) {
  p.op(*op);
  p.override<rhea::nn::FeedForward::Config>(
      name, {.exact = true}, [](const rhea::nn::FeedForward::Config& stock) {
        return rhea::derive<typename GatedFeedForward<op>::Config>(stock);
      });
}

}  // namespace my
