// T tokens, K in_features, N out_features
#include "rhea/ops/float8/float8.h"

#include <limits>

#include "rhea/base/error.h"
#include "rhea/ops/elementwise/elementwise.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using ir::Attrs;
using ir::OpInstance;
using ir::Type;

OpDef rounding_row() {
  const ElementwiseSpec spec = {
      .name = "round_float8",
      .attrs = {{"format", ir::AttrKind::i64, {}}},
      .f64 =
          [](const double* x, const Attrs& attrs) {
            const auto& format = kFloat8Formats[attrs.i64("format")];
            return static_cast<double>(round_float8(static_cast<float>(x[0]), format));
          },
      .tile = RHEA_TILE_CELL(round_float8),
      .flops = 8,
      .sample_attrs = {{"format", int64_t{0}}},
      .smooth = false,  // a staircase
  };
  OpDef row = elementwise_row(spec);
  row.samples = [spec] {
    std::vector<ir::Sample> samples;
    for (const int64_t format : {0, 1}) {
      ElementwiseSpec of_format = spec;
      of_format.sample_attrs = {{"format", format}};
      for (ir::Sample& sample : elementwise_samples(of_format)) {
        sample.name += format == 0 ? "_e4m3" : "_e5m2";
        samples.push_back(std::move(sample));
      }
    }
    return samples;
  };
  return row;
}

Float8Recipe recipe_of(const Attrs& attrs) {
  return static_cast<Float8Recipe>(attrs.i64("recipe"));
}

// x with a scale for each slice along `dim`, or one where the recipe has one for a tensor.
Value low(Value x, Float8Recipe recipe, int64_t dim, Float8 format = Float8::e4m3) {
  const bool whole = recipe == Float8Recipe::tensorwise;
  return through_float8(x, format, whole ? std::nullopt : std::optional(dim));
}

std::vector<Value> forward(ir::Graph&, std::span<const Value> in, const Attrs& attrs) {
  const Float8Recipe recipe = recipe_of(attrs);
  const Value y = dot_general(low(in[0], recipe, 1), low(in[1], recipe, 1), 1, 1, DType::f32);
  return {convert(y, in[0].dtype())};
}

// Each operand is scaled along the dim that its product sums over.
std::vector<Value> backward(const ir::VjpArgs& args) {
  const Float8Recipe recipe = recipe_of(args.attrs);
  const bool high_precision = recipe == Float8Recipe::rowwise_with_gw_hp;
  const Value x = args.inputs[0], w = args.inputs[1], dy = args.cotangents[0];
  const Float8 format = recipe == Float8Recipe::tensorwise ? Float8::e5m2 : Float8::e4m3;
  const Value w_low = high_precision ? through_float8(w, Float8::e4m3, {}) : low(w, recipe, 0);
  const Value dx = dot_general(low(dy, recipe, 1, format), w_low, 1, 0, DType::f32);
  const Value dw =
      high_precision ? dot_general(dy, x, 0, 0, DType::f32)
                     : dot_general(low(dy, recipe, 0, format), low(x, recipe, 0), 0, 0, DType::f32);
  return {convert(dx, x.dtype()), dw};
}

std::vector<Type> infer(std::span<const Type> in, const Attrs& attrs) {
  expect_operands(in, {"x", "w"});
  expect_float(in[0], "x");
  if (in[0].rank() != 2 || in[1].rank() != 2 || in[0].shape[1] != in[1].shape[1] ||
      in[0].dtype != in[1].dtype)
    throw Error("needs x [T, K] and w [N, K] of one dtype, got {} and {}", ir::to_string(in[0]),
                ir::to_string(in[1]));
  if (attrs.i64("recipe") < 0 || attrs.i64("recipe") > 2)
    throw Error("recipe is 0, 1 or 2, got {}", attrs.i64("recipe"));
  return {{in[0].dtype, {in[0].shape[0], in[1].shape[0]}}};
}

std::vector<ir::Sample> samples() {
  std::vector<ir::Sample> made;
  const auto add_case = [&](std::string name, DType dtype, int64_t t, int64_t k, int64_t n,
                            int64_t recipe) {
    made.push_back({.name = std::move(name),
                    .inputs = {uniform(dtype, {t, k}), uniform(dtype, {n, k})},
                    .attrs = {{"recipe", recipe}},
                    .check_vjp = false});  // a staircase
  };
  add_case("rowwise", DType::f32, 7, 33, 18, 0);
  add_case("rowwise_bf16", DType::bf16, 16, 64, 32, 0);
  add_case("gw_hp", DType::f32, 5, 48, 16, 1);
  add_case("tensorwise", DType::f32, 9, 40, 17, 2);
  add_case("tensorwise_f16", DType::f16, 4, 16, 16, 2);
  return made;
}

}  // namespace

const OpDef kRoundFloat8 = rounding_row();

const OpDef kFloat8Linear{
    .name = "float8_linear",
    .attrs = {{"recipe", ir::AttrKind::i64, {}}},
    .infer = infer,
    .decompose = forward,
    .vjp = backward,
    .shard =
        [](const OpInstance& op) {
          const bool whole = recipe_of(*op.attrs) == Float8Recipe::tensorwise;
          return whole ? "!a!k,!n!k->!a!n" : "a!k,n!k->an";
        },
    .cost =
        [](const OpInstance& op) {
          return ir::Cost{2.0 * static_cast<double>(num_elements(op.out[0].shape)) *
                              static_cast<double>(op.in[0].shape[1]),
                          operand_and_result_bytes(op)};
        },
    .samples = samples,
};

Value round_float8(Value x, Float8 format, Where where) {
  return x.graph->add1(kRoundFloat8, {x}, {{"format", static_cast<int64_t>(format)}}, where);
}

Value through_float8(Value x, Float8 format, std::optional<int64_t> dim, Where where) {
  const Value wide = convert(x, DType::f32);
  std::vector<int64_t> reduced, kept;
  for (int64_t i = 0; i < wide.type().rank(); ++i)
    (!dim || i == *dim ? reduced : kept).push_back(i);
  const Value largest = reduce_max(abs(wide), reduced);
  const auto same = [&](double value) { return x.graph->constant(value, largest.type()); };
  const double format_largest =
      static_cast<double>(kFloat8Formats[static_cast<int64_t>(format)].largest);
  // Of subnormals it would be infinite.
  const Value scale = minimum(same(format_largest) / largest,
                              same(static_cast<double>(std::numeric_limits<float>::max())));
  const Value all_zero = compare(largest, same(0), "EQ");
  const Value everywhere = broadcast_in_dim(select(all_zero, same(1), scale), wide.shape(), kept);
  return round_float8(wide * everywhere, format, where) / everywhere;
}

Value float8_linear(Value x_TK, Value w_NK, Float8Recipe recipe, Where where) {
  return x_TK.graph->add1(kFloat8Linear, {x_TK, w_NK}, {{"recipe", static_cast<int64_t>(recipe)}},
                          where);
}

}  // namespace rhea::ops
