#include "rhea/ops/cluster/cluster.h"

#include <fmt/format.h>
#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/ops/cluster/body.h"
#include "rhea/ops/cluster/shard.h"
#include "rhea/ops/cluster/space.h"
#include "rhea/ops/cluster/tiles.h"
#include "rhea/ops/cost.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

// The body as a graph of its own, whose first nodes are the operands; returns the results.
std::vector<ir::Value> body_of(std::span<const ir::Type> in, const ir::Attrs& attrs,
                               ir::Graph& graph) {
  std::vector<ir::Value> operands;
  for (const ir::Type& type : in)
    operands.push_back(graph.input(fmt::format("{}", operands.size()), type));
  return inline_cluster(graph, operands, attrs.str("body"));
}

std::vector<ir::Type> infer(std::span<const ir::Type> in, const ir::Attrs& attrs) {
  ir::Graph graph;
  const auto results = body_of(in, attrs, graph);
  if (results.empty()) throw Error("the body has no results");
  std::string why;
  if (!space_of(graph, body_nodes(graph), why)) throw Error("{}", why);
  std::vector<ir::Type> out;
  for (const ir::Value& value : results) {
    const Part part = part_of(graph, graph.node(value.id));
    if (part == Part::none || part == Part::spread)
      throw Error("result {} is made by {}, which computes nothing", out.size(),
                  graph.node(value.id).op->name);
    out.push_back(value.type());
  }
  return out;
}

ir::Cost cost(const ir::OpInstance& op) {
  ir::Cost total;
  for (const ir::Type& type : op.in) total.bytes += static_cast<double>(ir::byte_size(type));
  for (const ir::Type& type : op.out) total.bytes += static_cast<double>(ir::byte_size(type));
  ir::Graph graph;
  body_of(op.in, *op.attrs, graph);
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == &ir::kInput || node.op == &ir::kConstant) continue;
    std::vector<ir::Type> in;
    for (const ir::ValueId id : node.inputs) in.push_back(graph.type(id));
    total.flops += cost_of({node.op, in, node.outputs, &node.attrs}).flops;
  }
  return total;
}

std::string shard(const ir::OpInstance& op) {
  ir::Graph graph;
  for (const ir::Value& value : body_of(op.in, *op.attrs, graph))
    graph.output(fmt::format("{}", graph.outputs().size()), value);
  return shard_of_body(graph);
}

std::vector<ir::Sample> samples() {
  const auto of = [](std::string name, std::vector<ir::Type> in, std::string body) {
    ir::Sample sample{.name = std::move(name)};
    for (ir::Type& type : in)
      sample.inputs.push_back({.type = std::move(type), .low = 0.25, .high = 2});
    sample.attrs = {{"body", std::move(body)}};
    return sample;
  };
  const ir::Type wide{DType::f32, {5, 700}};
  const ir::Type narrow{DType::bf16, {3, 70}};
  const ir::Type rows{DType::f32, {300, 2, 65}}, tables{DType::f32, {3, 8}};
  ir::Sample mask = of("mask", {wide, wide}, "compare(0,1){direction=\"GT\"};select(2,0,1);->3,2");
  mask.check_vjp = false;
  return {
      of("chain", {wide, wide}, "multiply(0,1);exponential(2);add(3,0);->4"),
      of("rounded", {narrow, narrow}, "add(0,1);multiply(2,2);add(3,1);->2,4"),
      of("spread", {wide, {DType::f32, {700}}, {DType::f32, {5}}, {DType::f32, {}}},
         "broadcast_in_dim(1){dims=[1],shape=[5,700]};broadcast_in_dim(2){dims=[0],shape=[5,700]};"
         "broadcast_in_dim(3){dims=[],shape=[5,700]};multiply(0,4);add(7,5);subtract(8,6);->9"),
      of("splat", {{DType::f16, {4, 33}}},
         "constant(){dtype=f16,shape=[4,33],value=0.1};multiply(0,1);->2"),
      mask,
      // x - max over a row, exp, and its share of the sum: numbers of rows go back along the row
      of("softmax", {{DType::f32, {6, 3, 77}}},
         "reduce_max(0){dims=[2]};broadcast_in_dim(1){dims=[0,1],shape=[6,3,77]};subtract(0,2);"
         "exponential(3);reduce_sum(4){dims=[2]};broadcast_in_dim(5){dims=[0,1],shape=[6,3,77]};"
         "divide(4,6);->7,1"),
      // a vector is one row, whose numbers are scalars
      of("vector", {{DType::f32, {37}}, {DType::f32, {}}},
         "add(1,1);broadcast_in_dim(2){dims=[],shape=[37]};multiply(0,3);->4,2"),
      // arithmetic on numbers of rows, with a splat and an operand of their shape
      of("numbers", {{DType::f32, {40, 333}}, {DType::f32, {40}}},
         "multiply(0,0);reduce_sum(2){dims=[1]};constant(){dtype=f32,shape=[40],value=0.5};"
         "multiply(3,4);add(5,1);broadcast_in_dim(6){dims=[0],shape=[40,333]};add(0,7);->6,8"),
      of("norm", {{DType::bf16, {37, 130}}, {DType::bf16, {37, 130}}, {DType::bf16, {130}}},
         "add(0,1);rms_norm(3,2){eps=1e-05,weight_offset=0};->3,4"),
      // blocks of rows, whose parts of the weight gradient are joined in a second phase
      of("norm_grad", {{rows}, {DType::f32, {65}}, {rows}, {DType::bf16, {300, 2, 65}}},
         "negate(2);rms_norm_grad(0,1,4){eps=1e-05,weight_offset=1};convert(3){dtype=f32};"
         "add(5,7);->8,6"),
      of("layer_norm_grad", {{wide}, {DType::f32, {700}}, {wide}},
         "layer_norm_grad(0,1,2){eps=1e-05,has_bias=1,has_weight=1};add(3,2);->6,5,4"),
      of("rotated_norm",
         {{DType::f32, {21, 5, 20}}, {DType::f32, {20}}, tables, tables, {DType::i32, {21}}},
         "rms_norm(0,1){eps=1e-05,weight_offset=0};rope(5,2,3,4){interleaved=0,inverse=0};->6"),
  };
}

template <Isa isa>
ir::CpuKernel kernel(std::string_view name) {
  return {.name = name, .isa = isa, .plan = [](const ir::OpInstance& op) {
            return plan_cluster(op, isa);
          }};
}

// Only loading and rounding tiles differs, so without bf16 the next kernel does the same.
ir::CpuKernel bf16_kernel() {
  ir::CpuKernel with_bf16 = kernel<Isa::avx512_bf16>("tiles_avx512_bf16");
  with_bf16.accepts = [](const ir::OpInstance& op) -> std::string {
    const auto is_bf16 = [](const ir::Type& type) { return type.dtype == DType::bf16; };
    if (std::ranges::any_of(op.in, is_bf16) || std::ranges::any_of(op.out, is_bf16)) return "";
    return "no bf16 operands";
  };
  return with_bf16;
}

}  // namespace

const ir::OpDef kCluster{
    .name = "cluster",
    .attrs = {{"body", ir::AttrKind::str, {}}},
    .infer = infer,
    .decompose = [](ir::Graph& graph, std::span<const ir::Value> in, const ir::Attrs& attrs)
        -> std::vector<ir::Value> { return inline_cluster(graph, in, attrs.str("body")); },
    .shard = shard,
    .cpu = {bf16_kernel(), kernel<Isa::avx512>("tiles_avx512"), kernel<Isa::avx2>("tiles_avx2"),
            kernel<Isa::plain>("tiles_plain")},
    .cost = cost,
    .samples = samples,
};

}  // namespace rhea::ops
