// Size and work of a model, from its traced parameters.
#pragma once
#include <vector>

#include "rhea/nn/decoder.h"

namespace rhea::models {

struct ModelSize {
  int64_t num_parameters = 0;
  int64_t num_active = 0;  // that one token uses: of k of E experts
  // 6 N_mm + 6 L N (d_qk + d_v) S: no causal discount, no recomputation; N_mm are the active
  // parameters without an untied embedding.
  int64_t flops_per_token = 0;
};
ModelSize model_size(const nn::Decoder::Config& model, const std::vector<nn::Parameter>& parameters,
                     int64_t seq_len);

}  // namespace rhea::models
