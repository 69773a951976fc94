#include "rhea/ops/cluster/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/ops/cluster/body.h"
#include "rhea/ops/cluster/tiles.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

// Values of these types are exact in f32 tiles.
bool fits_tile(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16 ||
         dtype == DType::boolean;
}

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
  std::vector<ir::Type> out;
  for (const ir::Value& value : body_of(in, attrs, graph)) {
    if (graph.node(value.id).op->tile[0] == nullptr)
      throw Error("result {} is made by {}, which is not elementwise", out.size(),
                  graph.node(value.id).op->name);
    out.push_back(value.type());
  }
  if (out.empty()) throw Error("the body has no results");
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == &ir::kInput) continue;
    if (!can_cluster(graph, node)) throw Error("{} cannot run on tiles of f32", node.op->name);
    if (node.outputs[0].shape != out[0].shape)
      throw Error("all values of a cluster have one shape, got {} from {} beside {}",
                  ir::to_string(node.outputs[0]), node.op->name, ir::to_string(out[0]));
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
    total.flops += node.op->cost ? node.op->cost({node.op, in, node.outputs, &node.attrs}).flops
                                 : static_cast<double>(ir::num_elements(node.outputs[0].shape));
  }
  return total;
}

// Operands get the letters of the result's dims along which they vary.
std::string shard(const ir::OpInstance& op) {
  ir::Graph graph;
  body_of(op.in, *op.attrs, graph);
  const auto letter = [](size_t dim) { return static_cast<char>('a' + dim); };
  std::vector<std::string> operands(op.in.size());
  for (size_t i = 0; i < op.in.size(); ++i) {
    for (size_t dim = 0; dim < op.in[i].shape.size(); ++dim) operands[i] += letter(dim);
  }
  for (const ir::Node& node : graph.nodes()) {
    if (node.op->name != "broadcast_in_dim") continue;
    const auto operand = static_cast<size_t>(node.inputs[0].node);
    const auto& dims = node.attrs.list("dims");
    for (size_t i = 0; i < dims.size(); ++i)
      operands[operand][i] =
          op.in[operand].shape[i] == 1 ? '1' : letter(static_cast<size_t>(dims[i]));
  }
  std::string result;
  for (size_t dim = 0; dim < op.out[0].shape.size(); ++dim) result += letter(dim);
  return fmt::format("{}->{}", fmt::join(operands, ","),
                     fmt::join(std::vector<std::string>(op.out.size(), result), ","));
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
  };
}

template <Isa isa>
ir::CpuKernel kernel(std::string_view name) {
  return {.name = name, .isa = isa, .plan = [](const ir::OpInstance& op) {
            return plan_cluster(op, isa);
          }};
}

}  // namespace

std::optional<Spread> spread_of(const ir::Type& operand, const ir::Node& broadcast) {
  const ir::Shape& shape = broadcast.outputs[0].shape;
  const auto& dims = broadcast.attrs.list("dims");
  // Dims of the result over which the operand varies; they must lie side by side, in order.
  int64_t first = -1, last = -1, period = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (operand.shape[i] == 1) continue;
    if (first < 0) first = dims[i];
    if (last >= 0) {
      for (int64_t d = last + 1; d < dims[i]; ++d) {
        if (shape[static_cast<size_t>(d)] != 1) return std::nullopt;
      }
    }
    if (dims[i] <= last) return std::nullopt;
    last = dims[i];
    period *= operand.shape[i];
  }
  Spread spread{1, period};
  if (first < 0) spread.repeat = std::max<int64_t>(1, ir::num_elements(shape));
  for (int64_t d = last + 1; first >= 0 && d < static_cast<int64_t>(shape.size()); ++d)
    spread.repeat *= shape[static_cast<size_t>(d)];
  return spread;
}

bool can_cluster(const ir::Graph& graph, const ir::Node& node) {
  if (node.outputs.size() != 1) return false;
  const ir::Type& result = node.outputs[0];
  if (!fits_tile(result.dtype) || result.layout != ir::Layout::row_major) return false;
  if (node.op == &ir::kConstant) return true;
  for (const ir::ValueId id : node.inputs) {
    const ir::Type& type = graph.type(id);
    if (!fits_tile(type.dtype) || type.layout != ir::Layout::row_major) return false;
  }
  const std::string_view op = node.op->name;
  if (op == "broadcast_in_dim") return spread_of(graph.type(node.inputs[0]), node).has_value();
  if (node.op->tile[0] == nullptr || node.inputs.size() > 3) return false;
  for (const ir::ValueId id : node.inputs) {
    if (graph.type(id).shape != result.shape) return false;
  }
  // Flags are 0 and 1 in tiles: only these ops make or read them so.
  if (result.dtype == DType::boolean) return op == "compare";
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (graph.type(node.inputs[i]).dtype == DType::boolean &&
        !(op == "convert" || (op == "select" && i == 0)))
      return false;
  }
  return true;
}

const ir::OpDef kCluster{
    .name = "cluster",
    .attrs = {{"body", ir::AttrKind::str, {}}},
    .infer = infer,
    .decompose = [](ir::Graph& graph, std::span<const ir::Value> in, const ir::Attrs& attrs)
        -> std::vector<ir::Value> { return inline_cluster(graph, in, attrs.str("body")); },
    .shard = shard,
    .cpu = {kernel<Isa::avx512>("tiles_avx512"), kernel<Isa::avx2>("tiles_avx2"),
            kernel<Isa::plain>("tiles_plain")},
    .cost = cost,
    .samples = samples,
};

}  // namespace rhea::ops
