#include "rhea/nn/lora_linear.h"

#include <cmath>

#include "rhea/nn/transposed_linear.h"
#include "rhea/ops/ops.h"

namespace rhea::nn {

LoRALinear::Config::Config(const SlotBase& linear, int64_t adapter_rank, double adapter_alpha)
    : rank(adapter_rank), alpha(adapter_alpha) {
  base.replace(linear);
  // Readers of the tree see the layer's own sizes.
  in_features = base->in_features;
  out_features = base->out_features;
  bias = base->bias;
  init = base->init;
}

Value LoRALinear::Config::forward(Trace& trace, Value x) const {
  return adapted(trace, x, base->forward(trace, x));
}

Value LoRALinear::Config::adapted(Trace& trace, Value x, Value y) const {
  y = base->adapted(trace, x, y);
  const double bound = 1 / std::sqrt(static_cast<double>(in_features));
  const auto factor = [&](std::string_view name, Shape shape, const Init& start) {
    return ops::convert(trace.parameter(name, std::move(shape), start), x.dtype());
  };
  const Value a = factor("lora_a.weight", {rank, in_features}, Init::uniform(bound));
  const Value b = factor("lora_b.weight", {out_features, rank}, Init::zeros());
  trace.add_adapter(rank, alpha,
                    dynamic_cast<const TransposedLinear::Config*>(&base_layer()) != nullptr);
  // The scale is applied where there are the fewest elements.
  const Value low = ops::multiply(ops::linear(x, a), alpha / static_cast<double>(rank));
  return y + ops::linear(low, b);
}

void LoRALinear::Config::fields(Visitor& v) {
  Linear::Config::fields(v);
  v("base", base, "the layer that is adapted");
  v("rank", rank, "rows of A, columns of B", at_least(1));
  v("alpha", alpha, "the adapter counts alpha / rank");
}

}  // namespace rhea::nn
