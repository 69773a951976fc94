// Attention with linear biases: what a key's score loses with its distance, instead of positions in
// the embedding.
#pragma once
#include "rhea/nn/modules.h"

namespace rhea::nn {

struct PositionBias {
  // A table f32 [N, P] of constants for the positions [0, P = seq_len); attention adds row n's
  // bias[position of key] - bias[position of query] to the scores of head n.
  struct Config : rhea::Config {
    virtual Value forward(Trace& trace) const = 0;
    // Longest row that the model is made for; 0 = any.
    int64_t max_positions = 0;
    void fields(Visitor& v) override;
  };
};

struct Alibi {
  // bias[n][p] = slope_n * p. With 2^m <= N heads: the first 2^m slopes are 2^(-step), 2^(-2 step),
  // ..., step = bias_max / 2^m; the rest are 2^(-step/2), 2^(-3 step/2), ...
  struct Config : PositionBias::Config {
    int64_t n_heads = 0;
    double bias_max = 8;
    double factor = 1;  // of the products
    // Slopes, positions and products are bfloat16, as Falcon was trained.
    bool in_bfloat16 = false;
    Value forward(Trace& trace) const override;
    void fields(Visitor& v) override;
  };
};

}  // namespace rhea::nn
