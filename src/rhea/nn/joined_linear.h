// Several linear layers over the same input as one product.
#pragma once
#include <span>
#include <string_view>

#include "rhea/nn/modules.h"

namespace rhea::nn {

// A layer and its name.
struct NamedLinear {
  std::string_view name;         // below the open scope
  const Linear::Config* linear;  // not null
};

// Whether they can be one product: plain linear layers, all or none with a bias.
bool can_join(std::span<const NamedLinear> linears);

// Their outputs side by side, [.., sum of out_features], by one product with one parameter
// `<joined>.weight` (and `.bias`) whose rows are theirs in order. Checkpoints hold their own
// parameters and initial weights are the same. Throws Error unless can_join().
Value joined_linear(Trace& trace, std::string_view joined, std::span<const NamedLinear> linears,
                    Value x);

}  // namespace rhea::nn
