// The projection whose weight lies the other way round in published files.
#pragma once
#include "rhea/nn/modules.h"

namespace rhea::nn {

struct TransposedLinear {
  // y = x w (+ b) with w [in_features, out_features], as GPT-2 stores it
  struct Config : Linear::Config {
    Value forward(Trace& trace, Value x) const override;
  };
};

}  // namespace rhea::nn
