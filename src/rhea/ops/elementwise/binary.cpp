// Rows of two operands of one type: add subtract multiply divide maximum minimum power.
#include <cmath>

#include "rhea/ops/elementwise/elementwise.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using ir::Attrs;
using ir::VjpArgs;
using Cotangents = std::vector<Value>;

// Integer arithmetic wraps around, as in every tensor library.
int64_t wrapped(uint64_t x) { return static_cast<int64_t>(x); }
uint64_t word(int64_t x) { return static_cast<uint64_t>(x); }

// The gradient of maximum and minimum: halved between equal operands, and passed to both where one
// is NaN, as PyTorch.
Cotangents choose_vjp(const VjpArgs& args, std::string_view loses) {
  const Value a = args.inputs[0], b = args.inputs[1], dy = args.cotangents[0];
  const Value none = zeros(args.graph, dy.type());
  const Value shared = select(compare(a, b, "EQ"), multiply(dy, 0.5), dy);
  return {select(compare(a, b, loses), none, shared), select(compare(b, a, loses), none, shared)};
}

}  // namespace

const OpDef kAdd = elementwise_row({
    .name = "add",
    .num_operands = 2,
    .accepts = Numbers::numbers,
    .f64 = [](const double* x, const Attrs&) { return x[0] + x[1]; },
    .integer = [](const int64_t* x, const Attrs&) { return wrapped(word(x[0]) + word(x[1])); },
    .tile = RHEA_TILE_CELL(add),
    .vjp =
        [](const VjpArgs& args) {
          return Cotangents{args.cotangents[0], args.cotangents[0]};
        },
});

const OpDef kSubtract = elementwise_row({
    .name = "subtract",
    .num_operands = 2,
    .accepts = Numbers::numbers,
    .f64 = [](const double* x, const Attrs&) { return x[0] - x[1]; },
    .integer = [](const int64_t* x, const Attrs&) { return wrapped(word(x[0]) - word(x[1])); },
    .tile = RHEA_TILE_CELL(subtract),
    .vjp =
        [](const VjpArgs& args) {
          return Cotangents{args.cotangents[0], negate(args.cotangents[0])};
        },
});

const OpDef kMultiply = elementwise_row({
    .name = "multiply",
    .num_operands = 2,
    .accepts = Numbers::numbers,
    .f64 = [](const double* x, const Attrs&) { return x[0] * x[1]; },
    .integer = [](const int64_t* x, const Attrs&) { return wrapped(word(x[0]) * word(x[1])); },
    .tile = RHEA_TILE_CELL(multiply),
    .vjp =
        [](const VjpArgs& args) {
          const Value dy = args.cotangents[0];
          return Cotangents{dy * args.inputs[1], dy * args.inputs[0]};
        },
});

const OpDef kDivide = elementwise_row({
    .name = "divide",
    .num_operands = 2,
    .f64 = [](const double* x, const Attrs&) { return x[0] / x[1]; },
    .tile = RHEA_TILE_CELL(divide),
    .vjp =
        [](const VjpArgs& args) {
          const Value a = widen(args.inputs[0]), b = widen(args.inputs[1]);
          const Value da = widen(args.cotangents[0]) / b;
          const DType dtype = args.inputs[0].dtype();
          return Cotangents{convert(da, dtype), convert(negate(da * (a / b)), dtype)};
        },
    .ranges = {{-3, 3}, {0.5, 3}},
});

const OpDef kMaximum = elementwise_row({
    .name = "maximum",
    .num_operands = 2,
    .accepts = Numbers::numbers,
    .f64 = [](const double* x, const Attrs&) { return x[0] > x[1] || x[0] != x[0] ? x[0] : x[1]; },
    .integer = [](const int64_t* x, const Attrs&) { return x[0] > x[1] ? x[0] : x[1]; },
    .tile = RHEA_TILE_CELL(maximum),
    .vjp = [](const VjpArgs& args) { return choose_vjp(args, "LT"); },
});

const OpDef kMinimum = elementwise_row({
    .name = "minimum",
    .num_operands = 2,
    .accepts = Numbers::numbers,
    .f64 = [](const double* x, const Attrs&) { return x[0] < x[1] || x[0] != x[0] ? x[0] : x[1]; },
    .integer = [](const int64_t* x, const Attrs&) { return x[0] < x[1] ? x[0] : x[1]; },
    .tile = RHEA_TILE_CELL(minimum),
    .vjp = [](const VjpArgs& args) { return choose_vjp(args, "GT"); },
});

const OpDef kPower = elementwise_row({
    .name = "power",
    .num_operands = 2,
    .f64 = [](const double* x, const Attrs&) { return std::pow(x[0], x[1]); },
    .tile = RHEA_TILE_CELL(power),
    .vjp =
        [](const VjpArgs& args) {
          const Value a = widen(args.inputs[0]), b = widen(args.inputs[1]);
          const Value dy = widen(args.cotangents[0]), none = zeros(args.graph, dy.type());
          // b a^(b-1) is 0 for b = 0 also at a = 0, and a^b log a is 0 at a = 0 for b >= 0
          const Value da = select(compare(b, none, "EQ"), none, dy * b * power(a, add(b, -1)));
          const Value at_zero = select(compare(b, none, "GE"), none, dy * power(a, b) * log(a));
          const Value db = select(compare(a, none, "EQ"), at_zero, dy * power(a, b) * log(a));
          const DType dtype = args.inputs[0].dtype();
          return Cotangents{convert(da, dtype), convert(db, dtype)};
        },
    .flops = 20,
    .ranges = {{0.5, 2}, {-2, 2}},
});

Value add(Value a, Value b, Where where) { return a.graph->add1(kAdd, {a, b}, {}, where); }
Value subtract(Value a, Value b, Where where) {
  return a.graph->add1(kSubtract, {a, b}, {}, where);
}
Value multiply(Value a, Value b, Where where) {
  return a.graph->add1(kMultiply, {a, b}, {}, where);
}
Value divide(Value a, Value b, Where where) { return a.graph->add1(kDivide, {a, b}, {}, where); }
Value maximum(Value a, Value b, Where where) { return a.graph->add1(kMaximum, {a, b}, {}, where); }
Value minimum(Value a, Value b, Where where) { return a.graph->add1(kMinimum, {a, b}, {}, where); }
Value power(Value a, Value b, Where where) { return a.graph->add1(kPower, {a, b}, {}, where); }

Value add(Value x, double number, Where where) {
  return add(x, x.graph->constant(number, x.type(), where), where);
}
Value multiply(Value x, double number, Where where) {
  return multiply(x, x.graph->constant(number, x.type(), where), where);
}

}  // namespace rhea::ops
