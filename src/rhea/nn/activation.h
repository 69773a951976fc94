// Activation functions by the names of published configs.
#pragma once
#include <string_view>
#include <vector>

#include "rhea/nn/trace.h"

namespace rhea::nn {

// silu, gelu (erf), gelu_tanh, quick_gelu, relu, relu2 (its square), sigmoid, tanh, linear.
const std::vector<std::string_view>& activations();
// Elementwise, in x's dtype. `name` is one of activations().
Value activate(std::string_view name, Value x);

}  // namespace rhea::nn
