// swiglu(g, u) = round(g s) u with s = logistic(g), and its gradient:
//   du = dy round(g s)    dg = dy u s (1 + g (1 - s))
#include "rhea/ops/swiglu/swiglu_kernels.h"

#include <cmath>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

using ir::OpInstance;
using ir::Type;

void check_operands(std::span<const Type> in, size_t count) {
  if (in.size() != count) throw Error("takes {} operands, got {}", count, in.size());
  if (!is_float(in[0].dtype))
    throw Error("gate must be a floating point tensor, got {}", to_string(in[0]));
  for (const Type& type : in)
    if (type != in[0])
      throw Error("operands must have one type, got {} and {}", to_string(in[0]), to_string(type));
}

void reference(const ir::ReferenceArgs& args) {
  const auto &gate = args.in[0], &up = args.in[1];
  for (size_t i = 0; i < gate.size(); ++i) {
    const double g = gate[i], s = 1 / (1 + std::exp(-g));
    if (args.in.size() == 2) {
      args.out[0][i] = g * s * up[i];
    } else {
      const double dy = args.in[2][i];
      args.out[0][i] = dy * up[i] * s * (1 + g * (1 - s));
      args.out[1][i] = dy * g * s;
    }
  }
}

std::string letters(const Shape& shape) {
  std::string text;
  for (size_t i = 0; i < shape.size(); ++i) text += static_cast<char>('a' + i);
  return text;
}

std::vector<ir::Sample> samples() {
  std::vector<ir::Sample> made;
  const auto add_case = [&](std::string name, DType dtype, Shape shape, double range) {
    made.push_back({.name = std::move(name),
                    .inputs = {{.type = {dtype, shape}, .low = -range, .high = range},
                               {.type = {dtype, shape}, .low = -2, .high = 2}}});
  };
  add_case("odd", DType::f32, {5, 37}, 4);
  add_case("saturated", DType::f32, {3, 33}, 200);
  add_case("rank_3", DType::f32, {2, 3, 19}, 4);
  add_case("several_blocks", DType::f32, {40, 513}, 4);
  add_case("scalar", DType::f32, {}, 4);
  add_case("bf16", DType::bf16, {7, 50}, 4);
  add_case("f16", DType::f16, {3, 21}, 4);
  add_case("f64", DType::f64, {4, 11}, 4);
  add_case("empty", DType::f32, {0, 8}, 4);
  return made;
}

double elements(const OpInstance& op) {
  return static_cast<double>(ir::num_elements(op.in[0].shape));
}

}  // namespace

const OpDef kSwiglu{
    .name = "swiglu",
    .infer =
        [](std::span<const Type> in, const ir::Attrs&) {
          check_operands(in, 2);
          return std::vector<Type>{in[0]};
        },
    .decompose = [](ir::Graph&, std::span<const Value> in, const ir::Attrs&) -> std::vector<Value> {
      return {multiply(silu(in[0]), in[1])};
    },
    .vjp = [](const ir::VjpArgs& args) -> std::vector<Value> {
      const Value in[] = {args.inputs[0], args.inputs[1], args.cotangents[0]};
      return args.graph.add(kSwigluGrad, in);
    },
    .shard =
        [](const OpInstance& op) {
          const std::string x = letters(op.in[0].shape);
          return x + "," + x + "->" + x;
        },
    .cpu = swiglu_kernels(),
    .cost =
        [](const OpInstance& op) {
          return ir::Cost{8 * elements(op), static_cast<double>(3 * ir::byte_size(op.in[0]))};
        },
    .samples = samples,
    .reference = reference,
};

const OpDef kSwigluGrad{
    .name = "swiglu_grad",
    .infer =
        [](std::span<const Type> in, const ir::Attrs&) {
          check_operands(in, 3);
          return std::vector<Type>{in[0], in[0]};
        },
    .shard =
        [](const OpInstance& op) {
          const std::string x = letters(op.in[0].shape);
          return x + "," + x + "," + x + "->" + x + "," + x;
        },
    .cpu = swiglu_grad_kernels(),
    .cost =
        [](const OpInstance& op) {
          return ir::Cost{14 * elements(op), static_cast<double>(5 * ir::byte_size(op.in[0]))};
        },
    .samples =
        [] {
          auto made = samples();
          for (auto& sample : made) {
            sample.inputs.push_back(sample.inputs[1]);
            sample.check_vjp = false;  // the row has no vjp
          }
          return made;
        },
    .reference = reference,
};

Value swiglu(Value gate, Value up, Where where) {
  return gate.graph->add1(kSwiglu, {gate, up}, {}, where);
}

}  // namespace rhea::ops
