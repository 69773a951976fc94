// RMSNorm over the last dim and its gradient.
//
//   r = 1 / sqrt(mean(x^2) + eps)    n = round(x r)    y = n (offset + w)
//   g = dy (offset + w)    dx = r (g - n mean(g n))    dw = sum over rows of dy n
#include <cmath>

#include "rhea/ops/element.h"
#include "rhea/ops/norm/norm_kernels.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

using ir::OpInstance;
using ir::Type;

void check_operands(std::span<const Type> in, size_t count) {
  if (in.size() != count) throw Error("takes {} operands, got {}", count, in.size());
  const Type &x = in[0], &w = in[1];
  if (!is_float(x.dtype) || x.rank() < 1)
    throw Error("x must be a floating point tensor with at least one dim, got {}", to_string(x));
  if (w.dtype != x.dtype || w.shape != Shape{x.shape.back()})
    throw Error("weight must be {}[{}] for x {}, got {}", dtype_name(x.dtype), x.shape.back(),
                to_string(x), to_string(w));
  if (count == 3 && in[2] != x)
    throw Error("dy must have the type of x {}, got {}", to_string(x), to_string(in[2]));
}

void reference(const ir::ReferenceArgs& args) {
  const auto &x = args.in[0], &w = args.in[1];
  const int64_t width = args.in_types[0].shape.back();
  const double eps = args.attrs.f64("eps"), offset = args.attrs.f64("weight_offset");
  const bool grad = args.in.size() == 3;
  if (grad) args.out[1].assign(static_cast<size_t>(width), 0.0);
  for (size_t row = 0; row < x.size(); row += static_cast<size_t>(width)) {
    const auto columns = static_cast<size_t>(width);
    double squares = 0, dot = 0;
    for (size_t i = 0; i < columns; ++i) squares += x[row + i] * x[row + i];
    const double r = 1 / std::sqrt(squares / static_cast<double>(width) + eps);
    if (!grad) {
      for (size_t i = 0; i < columns; ++i) args.out[0][row + i] = x[row + i] * r * (offset + w[i]);
      continue;
    }
    const auto& dy = args.in[2];
    for (size_t i = 0; i < columns; ++i) dot += dy[row + i] * (offset + w[i]) * x[row + i] * r;
    dot /= static_cast<double>(width);
    for (size_t i = 0; i < columns; ++i) {
      const double n = x[row + i] * r;
      args.out[0][row + i] = r * (dy[row + i] * (offset + w[i]) - n * dot);
      args.out[1][i] += dy[row + i] * n;
    }
  }
}

std::vector<Value> decompose(ir::Graph&, std::span<const Value> in, const ir::Attrs& attrs) {
  const Value x = in[0], w = in[1];
  const DType wide = accum_dtype(x.dtype());
  const int64_t last = x.type().rank() - 1;
  std::vector<int64_t> outer;
  for (int64_t i = 0; i < last; ++i) outer.push_back(i);
  const Value x_wide = convert(x, wide);
  const double width = static_cast<double>(x.dim(-1));
  const Value mean = multiply(reduce_sum(multiply(x_wide, x_wide), {last}), 1 / width);
  const Value r = rsqrt(add(mean, attrs.f64("eps")));
  const Value n = convert(multiply(x_wide, broadcast_in_dim(r, x.shape(), outer)), x.dtype());
  const Value scale = add(convert(w, wide), attrs.f64("weight_offset"));
  return {
      convert(multiply(convert(n, wide), broadcast_in_dim(scale, x.shape(), {last})), x.dtype())};
}

// One letter per outer dim; the last dim is reduced inside a row and must stay whole.
std::string letters(const Shape& shape) {
  std::string text;
  for (size_t i = 0; i + 1 < shape.size(); ++i) text += static_cast<char>('a' + i);
  return text + "!z";
}

std::vector<ir::Sample> samples() {
  std::vector<ir::Sample> made;
  const auto add_case = [&](std::string name, DType dtype, Shape shape, double eps, double offset) {
    const Shape w = {shape.back()};
    made.push_back({.name = std::move(name),
                    .inputs = {{.type = {dtype, std::move(shape)}, .low = -2, .high = 2},
                               {.type = {dtype, w}, .low = -1, .high = 1}},
                    .attrs = {{"eps", eps}, {"weight_offset", offset}}});
  };
  add_case("odd", DType::f32, {5, 37}, 1e-5, 0);
  add_case("offset_one", DType::f32, {3, 19}, 1e-6, 1);
  add_case("per_head", DType::f32, {7, 3, 16}, 1e-6, 0);
  add_case("wide", DType::f32, {70, 130}, 1e-5, 0);
  add_case("one_row", DType::f32, {33}, 1e-5, 0);
  add_case("bf16", DType::bf16, {9, 65}, 1e-5, 0);
  add_case("bf16_per_head", DType::bf16, {5, 4, 64}, 1e-6, 1);
  add_case("f16", DType::f16, {3, 24}, 1e-5, 0);
  add_case("f64", DType::f64, {4, 11}, 1e-5, 0);
  add_case("no_rows", DType::f32, {0, 8}, 1e-5, 0);
  add_case("no_columns", DType::f32, {3, 0}, 1e-5, 0);
  return made;
}

std::vector<ir::Sample> grad_samples() {
  auto made = samples();
  for (auto& sample : made) {
    sample.inputs.push_back(sample.inputs[0]);
    sample.check_vjp = false;  // the row has no vjp
  }
  return made;
}

const std::vector<ir::AttrSpec> kAttrs = {
    {"eps", ir::AttrKind::f64, {}},
    {"weight_offset", ir::AttrKind::f64, ir::Attr{0.0}},
};

}  // namespace

const OpDef kRmsNorm{
    .name = "rms_norm",
    .attrs = kAttrs,
    .infer =
        [](std::span<const Type> in, const ir::Attrs&) {
          check_operands(in, 2);
          return std::vector<Type>{in[0]};
        },
    .decompose = decompose,
    .vjp = [](const ir::VjpArgs& args) -> std::vector<Value> {
      const Value in[] = {args.inputs[0], args.inputs[1], args.cotangents[0]};
      return args.graph.add(kRmsNormGrad, in, args.attrs);
    },
    .shard =
        [](const OpInstance& op) {
          const std::string x = letters(op.in[0].shape);
          return x + ",!z->" + x;
        },
    .cpu = rms_norm_kernels(),
    .cost =
        [](const OpInstance& op) {
          return ir::Cost{
              4.0 * static_cast<double>(ir::num_elements(op.in[0].shape)),
              static_cast<double>(2 * ir::byte_size(op.in[0]) + ir::byte_size(op.in[1]))};
        },
    .samples = samples,
    .reference = reference,
    .rows = rms_norm_tile,
};

const OpDef kRmsNormGrad{
    .name = "rms_norm_grad",
    .attrs = kAttrs,
    .infer =
        [](std::span<const Type> in, const ir::Attrs&) {
          check_operands(in, 3);
          return std::vector<Type>{in[0], {accum_dtype(in[1].dtype), in[1].shape}};
        },
    .shard =
        [](const OpInstance& op) {
          const std::string x = letters(op.in[0].shape);
          return x + ",!z," + x + "->" + x + ",!z";
        },
    .cpu = rms_norm_grad_kernels(),
    .cost =
        [](const OpInstance& op) {
          return ir::Cost{10.0 * static_cast<double>(ir::num_elements(op.in[0].shape)),
                          static_cast<double>(3 * ir::byte_size(op.in[0]) +
                                              ir::byte_size(op.in[1]) + ir::byte_size(op.out[1]))};
        },
    .samples = grad_samples,
    .reference = reference,
    .rows = rms_norm_grad_tile,
};

Value rms_norm(Value x, Value w_D, double eps, double weight_offset, Where where) {
  return x.graph->add1(kRmsNorm, {x, w_D}, {{"eps", eps}, {"weight_offset", weight_offset}}, where);
}

}  // namespace rhea::ops
