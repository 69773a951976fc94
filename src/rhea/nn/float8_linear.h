// A linear layer whose products are computed in 8-bit floating point.
#pragma once
#include "rhea/nn/modules.h"

namespace rhea::nn {

struct Float8Linear {
  // y = x w^T (+ b) by ops::float8_linear; parameters, bias and results stay in high precision.
  struct Config : Linear::Config {
    std::string recipe = "rowwise";  // rowwise, rowwise_with_gw_hp, tensorwise
    bool transposed = false;         // w is stored as [in_features, out_features]

    Config() = default;
    // In place of `linear`, with its parameters.
    Config(const Linear::Config& linear, std::string recipe_name);
    Value forward(Trace& trace, Value x) const override;
    void fields(Visitor& v) override;
  };
};

}  // namespace rhea::nn
