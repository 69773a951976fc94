// fused_mla: what multi-head latent attention makes from its input (queries or their latent, the
// latent of keys and values, the rotary key) as one matrix and one product. Checkpoints keep the
// stock parameters.
//   --override.imports fused_mla.fused_mla
//
// T tokens, D model dim
#include <array>

#include "rhea/nn/joined_linear.h"
#include "rhea/nn/mla.h"
#include "rhea/ops/ops.h"
#include "rhea/plugin/plugin.h"

namespace {

struct FusedMLA {
  struct Config : rhea::nn::LatentAttention::Config {
   protected:
    Projected project(rhea::nn::Trace& trace, rhea::nn::Value x_TD) const override {
      const bool direct = q_lora_rank == 0;
      const auto& q = direct ? wq : wq_a;
      const std::array linears = {rhea::nn::NamedLinear{direct ? names->wq : names->wq_a, &*q},
                                  rhea::nn::NamedLinear{names->wkv_a, &*wkv_a}};
      const auto both = joined_linear(trace, "wqkv_a", linears, x_TD);
      const int64_t width = q->out_features;
      return {rhea::ops::slice_dim(both, 1, 0, width),
              rhea::ops::slice_dim(both, 1, width, both.dim(1))};
    }
  };
};

}  // namespace

RHEA_PLUGIN(p) {
  p.override<rhea::nn::LatentAttention::Config>(
      "fused_mla.fused_mla",
      {.exact = true, .description = "projections of the input as one product"},
      [](const rhea::nn::LatentAttention::Config& stock) {
        return rhea::derive<FusedMLA::Config>(stock);
      });
}
