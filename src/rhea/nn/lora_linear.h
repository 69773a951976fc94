// A linear layer with a low-rank adapter beside it.
#pragma once
#include "rhea/nn/modules.h"

namespace rhea::nn {

struct LoRALinear {
  // base(x) + (alpha / rank) * B (A x). A [rank, in] starts uniform within 1/sqrt(in), B [out,
  // rank] at zero, so the adapter changes nothing before the first step. They are the parameters
  // lora_a.weight and lora_b.weight below the layer's own name.
  struct Config : Linear::Config {
    Slot<Linear::Config> base;
    int64_t rank = 8;
    double alpha = 16;

    Config() = default;
    // Wraps what `linear` holds.
    Config(const SlotBase& linear, int64_t adapter_rank, double adapter_alpha);
    Value forward(Trace& trace, Value x) const override;
    const Linear::Config& base_layer() const override { return base->base_layer(); }
    Value adapted(Trace& trace, Value x, Value y) const override;
    void fields(Visitor& v) override;
  };
};

}  // namespace rhea::nn
