// Rows of one operand: negate, abs, sign, exponentials, roots, trigonometric functions.
#include <cmath>

#include "rhea/ops/elementwise/elementwise.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using ir::Attrs;
using ir::VjpArgs;
using Cotangents = std::vector<Value>;

// dx = dy * slope(x, y), computed in f32 for 16-bit types and rounded once.
template <class F>
std::function<Cotangents(const VjpArgs&)> slope_vjp(F slope) {
  return [slope](const VjpArgs& args) {
    const Value dx =
        widen(args.cotangents[0]) * slope(widen(args.inputs[0]), widen(args.outputs[0]));
    return Cotangents{convert(dx, args.inputs[0].dtype())};
  };
}

}  // namespace

const OpDef kNegate = elementwise_row({
    .name = "negate",
    .accepts = Numbers::signed_numbers,
    .f64 = [](const double* x, const Attrs&) { return -x[0]; },
    .integer = [](const int64_t* x,
                  const Attrs&) { return static_cast<int64_t>(-static_cast<uint64_t>(x[0])); },
    .tile = RHEA_TILE_CELL(negate),
    .vjp = [](const VjpArgs& args) { return Cotangents{negate(args.cotangents[0])}; },
});

const OpDef kAbs = elementwise_row({
    .name = "abs",
    .accepts = Numbers::signed_numbers,
    .f64 = [](const double* x, const Attrs&) { return std::abs(x[0]); },
    .integer =
        [](const int64_t* x, const Attrs&) {
          const auto u = static_cast<uint64_t>(x[0]);
          return static_cast<int64_t>(x[0] < 0 ? -u : u);
        },
    .tile = RHEA_TILE_CELL(abs),
    .vjp =
        [](const VjpArgs& args) { return Cotangents{args.cotangents[0] * sign(args.inputs[0])}; },
    .ranges = {{0.1, 3}},
});

const OpDef kSign = elementwise_row({
    .name = "sign",
    .accepts = Numbers::signed_numbers,
    .f64 =
        [](const double* x, const Attrs&) {
          return static_cast<double>(x[0] > 0) - static_cast<double>(x[0] < 0);
        },
    .integer = [](const int64_t* x,
                  const Attrs&) { return static_cast<int64_t>((x[0] > 0) - (x[0] < 0)); },
    .tile = RHEA_TILE_CELL(sign),
    .vjp = [](const VjpArgs&) { return Cotangents{Value{}}; },
    .ranges = {{0.1, 3}},
});

const OpDef kExponential = elementwise_row({
    .name = "exponential",
    .f64 = [](const double* x, const Attrs&) { return std::exp(x[0]); },
    .tile = RHEA_TILE_CELL(exponential),
    .vjp = slope_vjp([](Value, Value y) { return y; }),
    .flops = 12,
});

const OpDef kLog = elementwise_row({
    .name = "log",
    .f64 = [](const double* x, const Attrs&) { return std::log(x[0]); },
    .tile = RHEA_TILE_CELL(log),
    .vjp = [](const VjpArgs& args) { return Cotangents{args.cotangents[0] / args.inputs[0]}; },
    .flops = 14,
    .ranges = {{0.1, 4}},
});

const OpDef kSqrt = elementwise_row({
    .name = "sqrt",
    .f64 = [](const double* x, const Attrs&) { return std::sqrt(x[0]); },
    .tile = RHEA_TILE_CELL(sqrt),
    .vjp =
        [](const VjpArgs& args) {
          const Value dx = widen(args.cotangents[0]) / multiply(widen(args.outputs[0]), 2);
          return Cotangents{convert(dx, args.inputs[0].dtype())};
        },
    .ranges = {{0.1, 4}},
});

const OpDef kRsqrt = elementwise_row({
    .name = "rsqrt",
    .f64 = [](const double* x, const Attrs&) { return 1 / std::sqrt(x[0]); },
    .tile = RHEA_TILE_CELL(rsqrt),
    .vjp = slope_vjp([](Value, Value y) { return multiply(y * y * y, -0.5); }),
    .flops = 2,
    .ranges = {{0.1, 4}},
});

const OpDef kTanh = elementwise_row({
    .name = "tanh",
    .f64 = [](const double* x, const Attrs&) { return std::tanh(x[0]); },
    .tile = RHEA_TILE_CELL(tanh),
    .vjp = slope_vjp([](Value, Value y) { return add(negate(y * y), 1); }),
    .flops = 16,
});

const OpDef kLogistic = elementwise_row({
    .name = "logistic",
    .f64 = [](const double* x, const Attrs&) { return 1 / (1 + std::exp(-x[0])); },
    .tile = RHEA_TILE_CELL(logistic),
    .vjp = slope_vjp([](Value, Value y) { return y * add(negate(y), 1); }),
    .flops = 15,
});

const OpDef kSine = elementwise_row({
    .name = "sine",
    .f64 = [](const double* x, const Attrs&) { return std::sin(x[0]); },
    .tile = RHEA_TILE_CELL(sine),
    .vjp = slope_vjp([](Value x, Value) { return cosine(x); }),
    .flops = 20,
});

const OpDef kCosine = elementwise_row({
    .name = "cosine",
    .f64 = [](const double* x, const Attrs&) { return std::cos(x[0]); },
    .tile = RHEA_TILE_CELL(cosine),
    .vjp = slope_vjp([](Value x, Value) { return negate(sine(x)); }),
    .flops = 20,
});

const OpDef kErf = elementwise_row({
    .name = "erf",
    .f64 = [](const double* x, const Attrs&) { return std::erf(x[0]); },
    .tile = RHEA_TILE_CELL(erf),
    .vjp = slope_vjp([](Value x, Value) {
      constexpr double two_over_sqrt_pi = 1.1283791670955126;
      return multiply(exponential(negate(x * x)), two_over_sqrt_pi);
    }),
    .flops = 30,
});

Value negate(Value x, Where where) { return x.graph->add1(kNegate, {x}, {}, where); }
Value abs(Value x, Where where) { return x.graph->add1(kAbs, {x}, {}, where); }
Value sign(Value x, Where where) { return x.graph->add1(kSign, {x}, {}, where); }
Value exponential(Value x, Where where) { return x.graph->add1(kExponential, {x}, {}, where); }
Value log(Value x, Where where) { return x.graph->add1(kLog, {x}, {}, where); }
Value sqrt(Value x, Where where) { return x.graph->add1(kSqrt, {x}, {}, where); }
Value rsqrt(Value x, Where where) { return x.graph->add1(kRsqrt, {x}, {}, where); }
Value tanh(Value x, Where where) { return x.graph->add1(kTanh, {x}, {}, where); }
Value logistic(Value x, Where where) { return x.graph->add1(kLogistic, {x}, {}, where); }
Value sine(Value x, Where where) { return x.graph->add1(kSine, {x}, {}, where); }
Value cosine(Value x, Where where) { return x.graph->add1(kCosine, {x}, {}, where); }
Value erf(Value x, Where where) { return x.graph->add1(kErf, {x}, {}, where); }

}  // namespace rhea::ops
