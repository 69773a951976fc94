#include "rhea/nn/joined_linear.h"

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"

namespace rhea::nn {

bool can_join(std::span<const NamedLinear> linears) {
  return std::ranges::all_of(linears, [&](const NamedLinear& each) {
    return typeid(*each.linear) == typeid(Linear::Config) &&
           each.linear->bias == linears.front().linear->bias;
  });
}

Value joined_linear(Trace& trace, std::string_view joined, std::span<const NamedLinear> linears,
                    Value x) {
  for (const NamedLinear& each : linears) {
    if (typeid(*each.linear) != typeid(Linear::Config))
      throw Error(
          "{} joins plain Linear layers, and {} is a {}: narrow the fqns of the override to "
          "modules "
          "without converted layers, or the targets of the converter to others",
          joined, each.name, type_name(*each.linear));
    if (each.linear->bias != linears.front().linear->bias)
      throw Error("{} joins layers all or none of which have a bias: {} {} one, {} {}", joined,
                  linears.front().name, linears.front().linear->bias ? "has" : "lacks", each.name,
                  each.linear->bias ? "has" : "lacks");
  }
  const Linear::Config& first = *linears.front().linear;
  std::vector<Trace::PartSpec> weights, biases;
  int64_t rows = 0;
  for (const auto& [name, linear] : linears) {
    const int64_t count = linear->out_features;
    weights.push_back({fmt::format("{}.weight", name), count, linear->init.init()});
    biases.push_back({fmt::format("{}.bias", name), count, Init::zeros()});
    rows += count;
  }
  const Value w =
      trace.parameter(fmt::format("{}.weight", joined), {rows, first.in_features}, weights);
  const Value y = ops::linear(x, w);
  if (!first.bias) return y;
  const Value b = trace.parameter(fmt::format("{}.bias", joined), {rows}, biases);
  return y + ops::broadcast_in_dim(b, y.shape(), {y.type().rank() - 1});
}

}  // namespace rhea::nn
