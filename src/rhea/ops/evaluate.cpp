// Reference evaluation of graphs.
#include "rhea/ops/evaluate.h"

#include <fmt/core.h>

#include "rhea/base/error.h"
#include "rhea/ir/row_cells.h"

namespace rhea::ops {

using ir::num_elements;
namespace {

std::vector<Tensor> by_reference(const ir::OpInstance& op, std::span<const Tensor> inputs) {
  std::vector<Tensor> results;
  for (const ir::Type& type : op.out)
    results.emplace_back(static_cast<size_t>(num_elements(type.shape)), 0.0);
  ir::call_reference(*op.op, {inputs, results, op.in, op.out, *op.attrs});
  return results;
}

std::vector<Tensor> by_decomposition(const ir::OpInstance& op, std::span<const Tensor> inputs) {
  ir::Graph graph;
  std::vector<ir::Value> operands;
  std::map<std::string, Tensor> named;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = fmt::format("operand{}", i);
    operands.push_back(graph.input(name, op.in[i]));
    named.emplace(name, inputs[i]);
  }
  const std::vector<ir::Value> values = ir::call_decompose(op, graph, operands);
  for (size_t i = 0; i < values.size(); ++i) graph.output(fmt::format("result{}", i), values[i]);
  std::map<std::string, Tensor> outputs = evaluate(graph, named);
  std::vector<Tensor> results;
  for (size_t i = 0; i < values.size(); ++i)
    results.push_back(std::move(outputs.at(fmt::format("result{}", i))));
  return results;
}

}  // namespace

std::vector<Tensor> evaluate_op(const ir::OpInstance& op, std::span<const Tensor> inputs,
                                Definition definition) {
  const bool has_reference = static_cast<bool>(op.op->reference);
  const bool has_decomposition = static_cast<bool>(op.op->decompose);
  if (has_decomposition && (definition == Definition::decomposition || !has_reference))
    return by_decomposition(op, inputs);
  if (!has_reference) throw Error("{}: has neither reference nor decomposition", op.op->name);
  return by_reference(op, inputs);
}

std::map<std::string, Tensor> evaluate(const ir::Graph& graph,
                                       const std::map<std::string, Tensor>& inputs) {
  const std::vector<ir::Node>& nodes = graph.nodes();
  std::vector<std::vector<Tensor>> results(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ir::Node& node = nodes[i];
    if (node.op == &ir::kInput) {
      const std::string& name = node.attrs.str("name");
      const auto given = inputs.find(name);
      if (given == inputs.end()) throw Error("evaluate: input '{}' is not given", name);
      const int64_t count = num_elements(node.outputs[0].shape);
      if (static_cast<int64_t>(given->second.size()) != count) {
        throw Error("evaluate: input '{}' is {}, got {} elements", name, to_string(node.outputs[0]),
                    given->second.size());
      }
      results[i] = {given->second};
      continue;
    }
    std::vector<ir::Type> in_types;
    std::vector<Tensor> operands;
    for (const ir::ValueId id : node.inputs) {
      in_types.push_back(graph.type(id));
      operands.push_back(results[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)]);
    }
    results[i] = evaluate_op({node.op, in_types, node.outputs, &node.attrs}, operands);
  }
  std::map<std::string, Tensor> outputs;
  for (const ir::GraphOutput& out : graph.outputs()) {
    outputs[out.name] =
        results[static_cast<size_t>(out.value.node)][static_cast<size_t>(out.value.output)];
  }
  return outputs;
}

}  // namespace rhea::ops
