// Rows silu and gelu.
#include <cmath>

#include "rhea/ops/elementwise/elementwise.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::Attrs;
using ir::Sample;
using ir::VjpArgs;
using Cotangents = std::vector<Value>;

constexpr double kSqrtHalf = 0.7071067811865476;
constexpr double kSqrtTwoOverPi = 0.7978845608028654;

// d/dx x s(x) = s (1 + x (1 - s)) with s = logistic
Cotangents silu_vjp(const VjpArgs& args) {
  const Value x = widen(args.inputs[0]);
  const Value s = logistic(x);
  const Value slope = s * add(x * add(negate(s), 1), 1);
  return {convert(widen(args.cotangents[0]) * slope, args.inputs[0].dtype())};
}

// sqrt(2 / pi) (x + 0.044715 x^3)
Value gelu_inner(Value x) {
  return multiply(x * add(multiply(x * x, 0.044715), 1), kSqrtTwoOverPi);
}

std::vector<Value> gelu_decompose(ir::Graph&, std::span<const Value> in, const Attrs& attrs) {
  const Value x = widen(in[0]);
  const Value bent = attrs.flag("approximate") ? tanh(gelu_inner(x)) : erf(multiply(x, kSqrtHalf));
  return {convert(multiply(x, 0.5) * add(bent, 1), in[0].dtype())};
}

// erf:  cdf(x) + x pdf(x)
// tanh: (1 + t) / 2 + x (1 - t^2) / 2 * d inner / dx
Cotangents gelu_vjp(const VjpArgs& args) {
  const Value x = widen(args.inputs[0]);
  const Value square = x * x;
  Value slope;
  if (args.attrs.flag("approximate")) {
    const Value t = tanh(gelu_inner(x));
    const Value inner_slope = multiply(add(multiply(square, 3 * 0.044715), 1), kSqrtTwoOverPi);
    slope = multiply(add(t, 1) + x * add(negate(t * t), 1) * inner_slope, 0.5);
  } else {
    constexpr double inverse_sqrt_two_pi = 0.3989422804014327;
    const Value density = multiply(exponential(multiply(square, -0.5)), inverse_sqrt_two_pi);
    slope = multiply(add(erf(multiply(x, kSqrtHalf)), 1), 0.5) + x * density;
  }
  return {convert(widen(args.cotangents[0]) * slope, args.inputs[0].dtype())};
}

const ElementwiseSpec kGeluSpec = {
    .name = "gelu",
    .attrs = {{"approximate", AttrKind::i64, {}}},
    .f64 =
        [](const double* x, const Attrs& attrs) {
          if (!attrs.flag("approximate")) return 0.5 * x[0] * (1 + std::erf(x[0] * kSqrtHalf));
          const double inner = kSqrtTwoOverPi * (x[0] + 0.044715 * x[0] * x[0] * x[0]);
          return 0.5 * x[0] * (1 + std::tanh(inner));
        },
    .tile = RHEA_TILE_CELL(gelu),
    .decompose = gelu_decompose,
    .vjp = gelu_vjp,
    .flops = 35,
};

std::vector<Sample> gelu_samples() {
  std::vector<Sample> samples;
  for (const int64_t approximate : {0, 1}) {
    ElementwiseSpec spec = kGeluSpec;
    spec.sample_attrs = {{"approximate", approximate}};
    for (Sample& sample : elementwise_samples(spec)) {
      sample.name += approximate ? "_tanh" : "_erf";
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

OpDef gelu_row() {
  OpDef row = elementwise_row(kGeluSpec);
  row.samples = gelu_samples;
  return row;
}

}  // namespace

const OpDef kSilu = elementwise_row({
    .name = "silu",
    .f64 = [](const double* x, const Attrs&) { return x[0] / (1 + std::exp(-x[0])); },
    .tile = RHEA_TILE_CELL(silu),
    .decompose =
        [](ir::Graph&, std::span<const Value> in, const Attrs&) {
          const Value x = widen(in[0]);
          return std::vector<Value>{convert(x * logistic(x), in[0].dtype())};
        },
    .vjp = silu_vjp,
    .flops = 16,
});

const OpDef kGelu = gelu_row();

Value silu(Value x, Where where) { return x.graph->add1(kSilu, {x}, {}, where); }
Value gelu(Value x, bool approximate, Where where) {
  return x.graph->add1(kGelu, {x}, {{"approximate", static_cast<int64_t>(approximate)}}, where);
}

}  // namespace rhea::ops
