// LayerNorm over the last dim (biased variance) and its gradient.
//
//   r = 1 / sqrt(mean((x - mean x)^2) + eps)    n = (x - mean x) r    y = n w + b
//   g = dy w    dx = r (g - mean g - n mean(g n))    dw = sum over rows of dy n    db = sum of dy
//
// Operands (x[, w][, b]), for the gradient (x[, w], dy); results dx[, dw][, db].
#include <cmath>

#include "rhea/ops/element.h"
#include "rhea/ops/norm/norm_kernels.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

using ir::OpInstance;
using ir::Type;

void check_operands(std::span<const Type> in, const ir::Attrs& attrs, bool grad) {
  const size_t count = 1 + static_cast<size_t>(attrs.i64("has_weight")) +
                       (grad ? 1 : static_cast<size_t>(attrs.i64("has_bias")));
  if (in.size() != count) throw Error("takes {} operands, got {}", count, in.size());
  const Type& x = in[0];
  if (!is_float(x.dtype) || x.rank() < 1)
    throw Error("x must be a floating point tensor with at least one dim, got {}", to_string(x));
  const size_t num_vectors = grad ? count - 2 : count - 1;
  for (size_t i = 1; i <= num_vectors; ++i)
    if (in[i] != Type{x.dtype, {x.shape.back()}})
      throw Error("weight and bias must be {}[{}] for x {}, got {}", dtype_name(x.dtype),
                  x.shape.back(), to_string(x), to_string(in[i]));
  if (grad && in.back() != x)
    throw Error("dy must have the type of x {}, got {}", to_string(x), to_string(in.back()));
}

struct Moments {
  double mean = 0, r = 0;
};
Moments moments(const double* x, size_t width, double eps) {
  double mean = 0, variance = 0;
  for (size_t i = 0; i < width; ++i) mean += x[i];
  mean /= static_cast<double>(width);
  for (size_t i = 0; i < width; ++i) variance += (x[i] - mean) * (x[i] - mean);
  return {mean, 1 / std::sqrt(variance / static_cast<double>(width) + eps)};
}

void reference_forward(const ir::ReferenceArgs& args) {
  const auto width = static_cast<size_t>(args.in_types[0].shape.back());
  const bool has_weight = args.attrs.flag("has_weight"), has_bias = args.attrs.flag("has_bias");
  for (size_t row = 0; row < args.in[0].size(); row += width) {
    const double* x = args.in[0].data() + row;
    const Moments m = moments(x, width, args.attrs.f64("eps"));
    for (size_t i = 0; i < width; ++i)
      args.out[0][row + i] = (x[i] - m.mean) * m.r * (has_weight ? args.in[1][i] : 1) +
                             (has_bias ? args.in.back()[i] : 0);
  }
}

void reference_backward(const ir::ReferenceArgs& args) {
  const auto columns = static_cast<size_t>(args.in_types[0].shape.back());
  const double width = static_cast<double>(columns);
  const bool has_weight = args.attrs.flag("has_weight"), has_bias = args.attrs.flag("has_bias");
  for (size_t i = 1; i < args.out.size(); ++i) args.out[i].assign(columns, 0.0);
  for (size_t row = 0; row < args.in[0].size(); row += columns) {
    const double *x = args.in[0].data() + row, *dy = args.in.back().data() + row;
    const Moments m = moments(x, columns, args.attrs.f64("eps"));
    double mean_g = 0, mean_gn = 0;
    const auto g = [&](size_t i) { return dy[i] * (has_weight ? args.in[1][i] : 1); };
    for (size_t i = 0; i < columns; ++i) {
      mean_g += g(i) / width;
      mean_gn += g(i) * (x[i] - m.mean) * m.r / width;
    }
    for (size_t i = 0; i < columns; ++i) {
      const double n = (x[i] - m.mean) * m.r;
      args.out[0][row + i] = m.r * (g(i) - mean_g - n * mean_gn);
      if (has_weight) args.out[1][i] += dy[i] * n;
      if (has_bias) args.out.back()[i] += dy[i];
    }
  }
}

std::string letters(const Shape& shape) {
  std::string text;
  for (size_t i = 0; i + 1 < shape.size(); ++i) text += static_cast<char>('a' + i);
  return text + "!z";
}

std::vector<ir::Sample> samples(bool grad) {
  std::vector<ir::Sample> made;
  const auto add_case = [&](std::string name, DType dtype, Shape shape, bool weight, bool bias) {
    const ir::SampleInput x{.type = {dtype, shape}, .low = -1, .high = 3};
    const ir::SampleInput vector{.type = {dtype, {shape.back()}}};
    ir::Sample sample{
        .name = std::move(name),
        .inputs = {x},
        .attrs = {{"eps", 1e-5}, {"has_weight", int64_t{weight}}, {"has_bias", int64_t{bias}}}};
    if (weight) sample.inputs.push_back(vector);
    if (bias && !grad) sample.inputs.push_back(vector);
    if (grad) {
      sample.inputs.push_back(x);
      sample.check_vjp = false;  // the row has no vjp
    }
    made.push_back(std::move(sample));
  };
  add_case("affine", DType::f32, {5, 37}, true, true);
  add_case("no_bias", DType::f32, {3, 19}, true, false);
  add_case("no_weight", DType::f32, {3, 19}, false, true);
  add_case("plain", DType::f32, {4, 2, 16}, false, false);
  add_case("wide", DType::f32, {70, 130}, true, true);
  add_case("one_row", DType::f32, {33}, true, true);
  add_case("bf16", DType::bf16, {9, 65}, true, true);
  add_case("f16", DType::f16, {3, 24}, true, true);
  add_case("f64", DType::f64, {4, 11}, true, true);
  add_case("no_rows", DType::f32, {0, 8}, true, true);
  add_case("no_columns", DType::f32, {3, 0}, true, true);
  return made;
}

const std::vector<ir::AttrSpec> kAttrs = {
    {"eps", ir::AttrKind::f64, {}},
    {"has_weight", ir::AttrKind::i64, ir::Attr{int64_t{1}}},
    {"has_bias", ir::AttrKind::i64, ir::Attr{int64_t{1}}},
};

std::string shard(const OpInstance& op, bool grad) {
  const std::string x = letters(op.in[0].shape);
  std::string in = x, out = x;
  for (size_t i = 1; i < op.in.size(); ++i)
    in += grad && i + 1 == op.in.size() ? "," + x : std::string(",!z");
  for (size_t i = 1; i < op.out.size(); ++i) out += ",!z";
  return in + "->" + out;
}

}  // namespace

const OpDef kLayerNorm{
    .name = "layer_norm",
    .attrs = kAttrs,
    .infer =
        [](std::span<const Type> in, const ir::Attrs& attrs) {
          check_operands(in, attrs, false);
          return std::vector<Type>{in[0]};
        },
    .vjp =
        [](const ir::VjpArgs& args) {
          std::vector<Value> in = {args.inputs[0]};
          const bool has_weight = args.attrs.flag("has_weight");
          if (has_weight) in.push_back(args.inputs[1]);
          in.push_back(args.cotangents[0]);
          return args.graph.add(kLayerNormGrad, in, args.attrs);  // dx, dw, db: the operands' order
        },
    .shard = [](const OpInstance& op) { return shard(op, false); },
    .cpu = layer_norm_kernels(),
    .cost =
        [](const OpInstance& op) {
          return ir::Cost{7.0 * static_cast<double>(ir::num_elements(op.in[0].shape)),
                          static_cast<double>(2 * ir::byte_size(op.in[0]))};
        },
    .samples = [] { return samples(false); },
    .reference = reference_forward,
    .rows = layer_norm_tile,
};

const OpDef kLayerNormGrad{
    .name = "layer_norm_grad",
    .attrs = kAttrs,
    .infer =
        [](std::span<const Type> in, const ir::Attrs& attrs) {
          check_operands(in, attrs, true);
          std::vector<Type> out = {in[0]};
          const Type vector = {accum_dtype(in[0].dtype), {in[0].shape.back()}};
          if (attrs.flag("has_weight")) out.push_back(vector);
          if (attrs.flag("has_bias")) out.push_back(vector);
          return out;
        },
    .shard = [](const OpInstance& op) { return shard(op, true); },
    .cpu = layer_norm_grad_kernels(),
    .cost =
        [](const OpInstance& op) {
          return ir::Cost{14.0 * static_cast<double>(ir::num_elements(op.in[0].shape)),
                          static_cast<double>(3 * ir::byte_size(op.in[0]))};
        },
    .samples = [] { return samples(true); },
    .reference = reference_backward,
    .rows = layer_norm_grad_tile,
};

Value layer_norm(Value x, std::optional<Value> w_D, std::optional<Value> b_D, double eps,
                 Where where) {
  std::vector<Value> in = {x};
  if (w_D) in.push_back(*w_D);
  if (b_D) in.push_back(*b_D);
  return x.graph->add(kLayerNorm, in,
                      {{"eps", eps},
                       {"has_weight", int64_t{w_D.has_value()}},
                       {"has_bias", int64_t{b_D.has_value()}}},
                      where)[0];
}

}  // namespace rhea::ops
