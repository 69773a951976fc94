#include "rhea/nn/activation.h"

#include <fmt/ranges.h>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"

namespace rhea::nn {
namespace {

struct Activation {
  std::string_view name;
  Value (*apply)(Value x);
};

Value relu(Value x) { return ops::maximum(x, x.graph->constant(0, x.type())); }

const Activation kActivations[] = {
    {"silu", [](Value x) { return ops::silu(x); }},
    {"gelu", [](Value x) { return ops::gelu(x, false); }},
    {"gelu_tanh", [](Value x) { return ops::gelu(x, true); }},
    {"quick_gelu", [](Value x) { return x * ops::logistic(ops::multiply(x, 1.702)); }},
    {"relu", relu},
    {"relu2",
     [](Value x) {
       const Value y = relu(x);
       return y * y;
     }},
    {"sigmoid", [](Value x) { return ops::logistic(x); }},
    {"tanh", [](Value x) { return ops::tanh(x); }},
    {"linear", [](Value x) { return x; }},
};

}  // namespace

const std::vector<std::string_view>& activations() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const Activation& activation : kActivations) names.push_back(activation.name);
    return names;
  }();
  return kNames;
}

Value activate(std::string_view name, Value x) {
  for (const Activation& activation : kActivations) {
    if (activation.name == name) return activation.apply(x);
  }
  throw Error("activation '{}' is unknown; known: {}", name, fmt::join(activations(), ", "));
}

}  // namespace rhea::nn
