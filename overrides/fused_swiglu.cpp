// fused_swiglu: the gate and up projections of a feed-forward, or of every expert of a layer, as
// one matrix and one product. Checkpoints keep the stock parameters.
//   --override.imports fused_swiglu.fused_swiglu fused_swiglu.fused_grouped_experts
//
// T tokens, D model dim, F hidden dim, E experts, R rows in the order of experts
#include <array>

#include "rhea/nn/joined_linear.h"
#include "rhea/nn/moe.h"
#include "rhea/ops/grouped/grouped.h"
#include "rhea/plugin/plugin.h"

namespace {

using rhea::nn::Trace;
using rhea::nn::Value;

// The two halves of the columns of `both`: activation(gate) * up.
Value gated_halves(std::string_view activation, Value both, int64_t half) {
  return rhea::nn::gated(activation, rhea::ops::slice_dim(both, 1, 0, half),
                         rhea::ops::slice_dim(both, 1, half, 2 * half));
}

struct FusedSwiGLU {
  struct Config : rhea::nn::FeedForward::Config {
    Value forward(Trace& trace, Value x_TD) const override {
      const std::array linears = {rhea::nn::NamedLinear{names->w1, &*w1},
                                  rhea::nn::NamedLinear{names->w3, &*w3}};
      const Value both = joined_linear(trace, names->w13, linears, x_TD);
      return call(trace, names->w2, *w2, gated_halves(activation, both, hidden_dim()));
    }
  };
};

struct FusedGroupedExperts {
  struct Config : rhea::nn::SplitExperts::Config {
    Value forward(Trace& trace, Value x_RD, const rhea::ops::ExpertOrder& order) const override {
      const Value both = rhea::ops::grouped_product(x_RD, joined_weight(trace), order.counts_E, 1);
      const Value w2_EDF = weight(trace, names->w2, dim, hidden_dim, w2_init);
      return rhea::ops::grouped_product(gated_halves(activation, both, hidden_dim), w2_EDF,
                                        order.counts_E, 1);
    }

   private:
    // [E,2F,D]: of every expert its gate rows, then its up rows. Checkpoints have a tensor for all
    // experts (native models) or one for each.
    Value joined_weight(Trace& trace) const {
      const rhea::nn::Shape joined = {num_experts, 2 * hidden_dim, dim};
      std::vector<Trace::BlockSpec> parts;
      for (const auto& [name, init, row] :
           {std::tuple{names->w1, &w1_init, int64_t{0}}, {names->w3, &w3_init, hidden_dim}}) {
        const auto add = [&](const std::string& stock_name, const rhea::nn::Shape& stock,
                             int64_t expert) {
          parts.push_back({stock_name, stock, init->init(),
                           rhea::nn::stored_in(joined, {expert, row, 0}, stock)});
        };
        if (names->stacked) {
          add(fmt::format("{}.{}", names->experts, name), {num_experts, hidden_dim, dim}, 0);
          continue;
        }
        for (int64_t e = 0; e < num_experts; ++e)
          add(fmt::format("{}.{}.{}.weight", names->experts, e, name), {hidden_dim, dim}, e);
      }
      return trace.parameter(fmt::format("{}.w13", names->experts), joined, parts,
                             {top_k, num_experts});
    }
  };
};

}  // namespace

RHEA_PLUGIN(p) {
  p.override<rhea::nn::FeedForward::Config>(
      "fused_swiglu.fused_swiglu",
      {.exact = true, .description = "gate and up projections as one product"},
      [](const rhea::nn::FeedForward::Config& stock) {
        return rhea::derive<FusedSwiGLU::Config>(stock);
      });
  p.override<rhea::nn::SplitExperts::Config>(
      "fused_swiglu.fused_grouped_experts",
      {.exact = true, .description = "gate and up of all experts as one product"},
      [](const rhea::nn::SplitExperts::Config& stock) {
        return rhea::derive<FusedGroupedExperts::Config>(stock);
      });
}
