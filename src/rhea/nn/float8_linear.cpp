#include "rhea/nn/float8_linear.h"

#include "rhea/base/error.h"
#include "rhea/nn/transposed_linear.h"
#include "rhea/ops/float8/float8.h"

namespace rhea::nn {
namespace {

ops::Float8Recipe parse(const std::string& name) {
  if (name == "rowwise") return ops::Float8Recipe::rowwise;
  if (name == "rowwise_with_gw_hp") return ops::Float8Recipe::rowwise_with_gw_hp;
  if (name == "tensorwise") return ops::Float8Recipe::tensorwise;
  throw Error("float8 recipe '{}' is unknown; known: rowwise, rowwise_with_gw_hp, tensorwise",
              name);
}

}  // namespace

Float8Linear::Config::Config(const Linear::Config& linear, std::string recipe_name)
    : recipe(std::move(recipe_name)),
      transposed(dynamic_cast<const TransposedLinear::Config*>(&linear) != nullptr) {
  parse(recipe);
  in_features = linear.in_features;
  out_features = linear.out_features;
  bias = linear.bias;
  init = linear.init;
}

Value Float8Linear::Config::forward(Trace& trace, Value x) const {
  const Shape shape =
      transposed ? Shape{in_features, out_features} : Shape{out_features, in_features};
  Value w_NK = ops::convert(trace.parameter("weight", shape, init.init()), x.dtype());
  if (transposed) w_NK = ops::transpose(w_NK, {1, 0});
  const int64_t rows = ir::num_elements(x.shape()) / in_features;
  Value y = ops::float8_linear(ops::reshape(x, {rows, in_features}), w_NK, parse(recipe));
  Shape outer = x.shape();
  outer.back() = out_features;
  y = ops::reshape(y, outer);
  if (!bias) return y;
  const Value b = ops::convert(trace.parameter("bias", {out_features}, Init::zeros()), x.dtype());
  return y + ops::broadcast_in_dim(b, y.shape(), {y.type().rank() - 1});
}

void Float8Linear::Config::fields(Visitor& v) {
  Linear::Config::fields(v);
  v("recipe", recipe, "granularity of scales and formats of gradients",
    one_of{"rowwise", "rowwise_with_gw_hp", "tensorwise"});
  v("transposed", transposed, "the weight is stored [in_features, out_features]");
}

}  // namespace rhea::nn
