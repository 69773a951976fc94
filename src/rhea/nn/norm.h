// Norms over the last dim: one interface, so that every slot for a norm takes any of them.
#pragma once
#include "rhea/nn/modules.h"

namespace rhea::nn {

struct Norm {
  // x [..., dim] -> the same shape and dtype
  struct Config : rhea::Config {
    int64_t dim = 0;
    double eps = 1e-5;
    virtual Value forward(Trace& trace, Value x) const = 0;
    void fields(Visitor& v) override;
  };
};

struct RMSNorm {
  // x / sqrt(mean(x^2) + eps) * (offset + weight); offset + weight starts at 1
  struct Config : Norm::Config {
    double offset = 0;
    Value forward(Trace& trace, Value x) const override;
    void fields(Visitor& v) override;
  };
};

struct LayerNorm {
  // (x - mean) / sqrt(variance + eps) * (offset + weight) + bias; offset + weight starts at 1
  struct Config : Norm::Config {
    double offset = 0;
    bool weight = true, bias = true;
    Value forward(Trace& trace, Value x) const override;
    void fields(Visitor& v) override;
  };
};

struct HeadLayerNorm {
  // x_TNH: LayerNorm of each head with a weight [N, H], so that every head has its own
  struct Config : Norm::Config {
    Value forward(Trace& trace, Value x_TNH) const override;
  };
};

}  // namespace rhea::nn
