// Size and work of a model, from its traced parameters.
#pragma once
#include <vector>

#include "rhea/nn/decoder.h"

namespace rhea::models {

struct ModelSize {
  int64_t num_parameters = 0;
  int64_t num_sparse = 0;     // in experts
  int64_t num_active = 0;     // that one token uses: of k of E experts
  int64_t num_trainable = 0;  // all but frozen ones
  // 6 N_mm + 6 L N (d_qk + d_v) S: no causal discount, no recomputation; N_mm are the active
  // parameters without an untied embedding. Frozen ones count 4: they get no gradient.
  int64_t flops_per_token = 0;
  double trainable_percent() const {
    return 100 * static_cast<double>(num_trainable) / static_cast<double>(num_parameters);
  }
};
// `parameters`: all of the model, frozen ones too.
ModelSize model_size(const nn::Decoder::Config& model, const std::vector<nn::Parameter>& parameters,
                     int64_t seq_len);

}  // namespace rhea::models
