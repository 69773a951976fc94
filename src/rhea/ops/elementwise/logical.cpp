// Rows that choose, compare and change types: compare select convert stop_gradient.
#include <array>
#include <cmath>
#include <limits>

#include "rhea/base/error.h"
#include "rhea/ops/elementwise/elementwise.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::Attrs;
using ir::Sample;
using ir::Type;
using ir::VjpArgs;
using Cotangents = std::vector<Value>;

constexpr std::array<std::string_view, 6> kDirections = {"EQ", "NE", "LT", "LE", "GT", "GE"};

template <class T>
bool holds(int direction, T a, T b) {
  switch (direction) {
    case 0:
      return a == b;
    case 1:
      return a != b;
    case 2:
      return a < b;
    case 3:
      return a <= b;
    case 4:
      return a > b;
    default:
      return a >= b;
  }
}

const ElementwiseSpec kCompareSpec = {
    .name = "compare",
    .num_operands = 2,
    .accepts = Numbers::any,
    .attrs = {{"direction", AttrKind::str, {}}},
    .f64 =
        [](const double* x, const Attrs& attrs) {
          return holds(compare_direction(attrs), x[0], x[1]) ? 1.0 : 0.0;
        },
    .integer =
        [](const int64_t* x, const Attrs& attrs) {
          return static_cast<int64_t>(holds(compare_direction(attrs), x[0], x[1]));
        },
    .tile = RHEA_TILE_CELL(compare),
    .infer =
        [](std::span<const Type> in, const Attrs& attrs) {
          expect_operands(in, {"a", "b"});
          expect_same_types(in);
          compare_direction(attrs);
          return std::vector<Type>{{DType::boolean, in[0].shape}};
        },
    .vjp = [](const VjpArgs&) { return Cotangents(2); },
    .sample_attrs = {{"direction", std::string("LT")}},
    .smooth = false,
};

const ElementwiseSpec kSelectSpec = {
    .name = "select",
    .num_operands = 3,
    .accepts = Numbers::any,
    .f64 = [](const double* x, const Attrs&) { return x[0] != 0 ? x[1] : x[2]; },
    .integer = [](const int64_t* x, const Attrs&) { return x[0] != 0 ? x[1] : x[2]; },
    .tile = RHEA_TILE_CELL(select),
    .infer =
        [](std::span<const Type> in, const Attrs&) {
          expect_operands(in, {"condition", "a", "b"});
          expect_same_types(in.subspan(1));
          if (in[0].dtype != DType::boolean || in[0].shape != in[1].shape) {
            throw Error("condition must be bool{}, got {}", to_string(in[1].shape),
                        to_string(in[0]));
          }
          return std::vector<Type>{in[1]};
        },
    .vjp =
        [](const VjpArgs& args) {
          const Value dy = args.cotangents[0], none = zeros(args.graph, dy.type());
          return Cotangents{Value{}, select(args.inputs[0], dy, none),
                            select(args.inputs[0], none, dy)};
        },
};

std::vector<Sample> compare_samples() {
  std::vector<Sample> samples = elementwise_samples(kCompareSpec);
  for (const std::string_view direction : kDirections) {
    // few values, so that equal ones occur; NaN among them
    const double nan = std::numeric_limits<double>::quiet_NaN();
    Sample sample{.name = std::string(direction), .check_vjp = false};
    sample.inputs = {values(DType::f32, {6}, {0, 1, 1, nan, nan, -0.0}),
                     values(DType::f32, {6}, {1, 1, 0, nan, 1, 0})};
    sample.attrs.set("direction", std::string(direction));
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<Sample> select_samples() {
  std::vector<Sample> samples;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64,
                            DType::u8, DType::boolean}) {
    for (const Shape& shape : {Shape{3, 19}, Shape{}, Shape{0, 2}}) {
      const double low = dtype == DType::u8 || dtype == DType::boolean ? 0 : -2;
      const double high = dtype == DType::boolean ? 1 : 2;
      samples.push_back(
          {.name = std::string(dtype_name(dtype)) + to_string(shape),
           .inputs = {uniform(DType::boolean, shape, 0, 1), uniform(dtype, shape, low, high),
                      uniform(dtype, shape, low, high)}});
    }
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  samples.push_back(
      {.name = "refused_nan_stays_out",
       .inputs = {values(DType::boolean, {2}, {1, 0}), values(DType::f32, {2}, {1, nan}),
                  values(DType::f32, {2}, {nan, 2})},
       .check_vjp = false});
  return samples;
}

// A float value in an integer type: towards zero; what does not fit saturates, NaN becomes 0.
double to_integer(double x, DType dtype) {
  if (x != x) return 0;
  switch (dtype) {
    case DType::i32:
      return std::trunc(std::min(std::max(x, -2147483648.0), 2147483647.0));
    case DType::i64:
      return std::trunc(std::min(std::max(x, -0x1p63), 0x1.fffffffffffffp62));
    case DType::u8:
      return std::trunc(std::min(std::max(x, 0.0), 255.0));
    default:
      return x;
  }
}

const ElementwiseSpec kConvertSpec = {
    .name = "convert",
    .accepts = Numbers::any,
    .attrs = {{"dtype", AttrKind::dtype, {}}},
    .f64 =
        [](const double* x, const Attrs& attrs) {
          const DType dtype = attrs.dtype("dtype");
          if (dtype == DType::boolean) return x[0] != 0 ? 1.0 : 0.0;
          return is_float(dtype) ? x[0] : to_integer(x[0], dtype);
        },
    .integer =
        [](const int64_t* x, const Attrs& attrs) {
          return attrs.dtype("dtype") == DType::boolean ? static_cast<int64_t>(x[0] != 0) : x[0];
        },
    .tile = RHEA_TILE_CELL(identity),
    .infer =
        [](std::span<const Type> in, const Attrs& attrs) {
          expect_operands(in, {"x"});
          return std::vector<Type>{{attrs.dtype("dtype"), in[0].shape}};
        },
    .vjp =
        [](const VjpArgs& args) {
          const DType dtype = args.inputs[0].dtype();
          if (!is_float(dtype)) return Cotangents{Value{}};
          return Cotangents{convert(args.cotangents[0], dtype)};
        },
};

std::vector<Sample> convert_samples() {
  constexpr DType all[] = {DType::f32, DType::bf16, DType::f16, DType::f64,
                           DType::i32, DType::i64,  DType::u8,  DType::boolean};
  std::vector<Sample> samples;
  for (const DType from : all) {
    for (const DType to : all) {
      const bool small = from == DType::boolean || to == DType::boolean;
      const double low = from == DType::u8 || to == DType::u8 || small ? 0 : -90;
      samples.push_back(
          {.name = std::string(dtype_name(from)) + "_to_" + std::string(dtype_name(to)),
           .inputs = {uniform(from, {3, 41}, low, small ? 1 : 90)},
           .attrs = {{"dtype", to}},
           .check_vjp = is_float(from) && is_float(to)});
    }
  }
  for (const DType to : {DType::bf16, DType::f16}) {
    samples.push_back({.name = "special_to_" + std::string(dtype_name(to)),
                       .inputs = {values(DType::f32, {17}, special_values())},
                       .attrs = {{"dtype", to}},
                       .check_vjp = false});
  }
  samples.push_back({.name = "i64_is_exact",
                     .inputs = {values(DType::i64, {2}, {9007199254740992.0, -5})},
                     .attrs = {{"dtype", DType::i64}}});
  samples.push_back({.name = "saturates",
                     .inputs = {values(DType::f32, {4}, {3e9, -3e9, 1.9, -1.9})},
                     .attrs = {{"dtype", DType::i32}},
                     .check_vjp = false});
  samples.push_back({.name = "empty",
                     .inputs = {uniform(DType::f32, {0, 5})},
                     .attrs = {{"dtype", DType::bf16}}});
  return samples;
}

OpDef with_samples(const ElementwiseSpec& spec, std::vector<Sample> (*samples)()) {
  OpDef row = elementwise_row(spec);
  row.samples = samples;
  return row;
}

const ElementwiseSpec kStopGradientSpec = {
    .name = "stop_gradient",
    .accepts = Numbers::any,
    .f64 = [](const double* x, const Attrs&) { return x[0]; },
    .integer = [](const int64_t* x, const Attrs&) { return x[0]; },
    .tile = RHEA_TILE_CELL(identity),
    .vjp = [](const VjpArgs&) { return Cotangents{Value{}}; },
    .smooth = false,  // the derivative is not what it says, by purpose
};

}  // namespace

int compare_direction(const Attrs& attrs) {
  const std::string& name = attrs.str("direction");
  for (size_t i = 0; i < kDirections.size(); ++i) {
    if (kDirections[i] == name) return static_cast<int>(i);
  }
  throw Error("direction must be EQ, NE, LT, LE, GT or GE, got '{}'", name);
}

const OpDef kCompare = with_samples(kCompareSpec, compare_samples);
const OpDef kSelect = with_samples(kSelectSpec, select_samples);
const OpDef kConvert = with_samples(kConvertSpec, convert_samples);
const OpDef kStopGradient = elementwise_row(kStopGradientSpec);

Value compare(Value a, Value b, std::string_view direction, Where where) {
  return a.graph->add1(kCompare, {a, b}, {{"direction", std::string(direction)}}, where);
}
Value select(Value condition, Value a, Value b, Where where) {
  return a.graph->add1(kSelect, {condition, a, b}, {}, where);
}
Value convert(Value x, DType dtype, Where where) {
  if (x.dtype() == dtype) return x;
  return x.graph->add1(kConvert, {x}, {{"dtype", dtype}}, where);
}
Value stop_gradient(Value x, Where where) { return x.graph->add1(kStopGradient, {x}, {}, where); }

}  // namespace rhea::ops
