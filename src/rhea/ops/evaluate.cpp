// Reference evaluation of graphs.
#include "rhea/ops/evaluate.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/thread_pool.h"
#include "rhea/ir/row_cells.h"
#include "rhea/ops/blocks.h"
#include "rhea/ops/cost.h"

namespace rhea::ops {

using ir::num_elements;
namespace {

// Gives the values of an input, which are not asked for again.
using Take = std::function<Tensor(const ir::Node& input)>;
std::map<std::string, Tensor> evaluate_nodes(const ir::Graph& graph, const Take& take,
                                             ThreadPool* pool);

std::string operand_name(size_t i) { return fmt::format("operand{}", i); }
std::string result_name(size_t i) { return fmt::format("result{}", i); }

// The decomposition as a graph. Its operands are outputs too: they are kept and given back.
ir::Graph decomposition_of(const ir::OpInstance& op) {
  ir::Graph graph;
  std::vector<ir::Value> operands;
  for (const ir::Type& type : op.in)
    operands.push_back(graph.input(operand_name(operands.size()), type));
  const std::vector<ir::Value> results = ir::call_decompose(op, graph, operands);
  for (size_t i = 0; i < results.size(); ++i) graph.output(result_name(i), results[i]);
  for (size_t i = 0; i < operands.size(); ++i) graph.output(operand_name(i), operands[i]);
  return graph;
}

// `inputs` are lent: the same afterwards.
std::vector<Tensor> by_decomposition(const ir::OpInstance& op, std::span<Tensor> inputs,
                                     ThreadPool* pool) {
  std::map<std::string, Tensor*> lent;
  for (size_t i = 0; i < inputs.size(); ++i) lent[operand_name(i)] = &inputs[i];
  const auto take = [&](const ir::Node& input) {
    return std::move(*lent.at(input.attrs.str("name")));
  };
  std::map<std::string, Tensor> made = evaluate_nodes(decomposition_of(op), take, pool);
  for (const auto& [name, input] : lent) *input = std::move(made.at(name));
  std::vector<Tensor> results;
  for (size_t i = 0; i < op.out.size(); ++i) results.push_back(std::move(made.at(result_name(i))));
  return results;
}

bool is_decomposed(const ir::OpDef& op, Definition definition) {
  return op.decompose && (definition == Definition::decomposition || !op.reference);
}

// `inputs` are the same afterwards.
std::vector<Tensor> evaluate_node(const ir::OpInstance& op, std::span<Tensor> inputs, double flops,
                                  ThreadPool* pool) {
  if (is_decomposed(*op.op, Definition::reference)) return by_decomposition(op, inputs, pool);
  if (pool != nullptr)
    if (const auto blocks = cut_into_blocks(op, flops, pool->num_threads()))
      return evaluate_blocks(op, *blocks, inputs, *pool);
  return by_reference(op, inputs, pool);
}

// Index of the node that reads a node's results last; one past the end for what is an output, and
// for what nobody reads.
std::vector<size_t> last_uses(const ir::Graph& graph) {
  const std::vector<ir::Node>& nodes = graph.nodes();
  std::vector<size_t> last(nodes.size(), nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const ir::ValueId id : nodes[i].inputs) last[static_cast<size_t>(id.node)] = i;
  for (const ir::GraphOutput& out : graph.outputs())
    last[static_cast<size_t>(out.value.node)] = nodes.size();
  return last;
}

// For each operand, the first one that is the same value.
std::vector<size_t> first_places(const std::vector<ir::ValueId>& operands) {
  std::vector<size_t> first;
  for (const ir::ValueId id : operands)
    first.push_back(static_cast<size_t>(std::ranges::find(operands, id) - operands.begin()));
  return first;
}

// Whether a later output has the same value: only the last one can take it.
bool is_named_again(const ir::Graph& graph, size_t output) {
  const std::span outputs(graph.outputs());
  return std::ranges::count(outputs.subspan(output + 1), outputs[output].value,
                            &ir::GraphOutput::value) > 0;
}

std::map<std::string, Tensor> evaluate_nodes(const ir::Graph& graph, const Take& take,
                                             ThreadPool* pool) {
  const std::vector<ir::Node>& nodes = graph.nodes();
  const std::vector<size_t> last = last_uses(graph);
  std::vector<std::vector<Tensor>> results(nodes.size());
  const auto result = [&](ir::ValueId id) -> Tensor& {
    return results[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)];
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ir::Node& node = nodes[i];
    if (node.op == &ir::kInput) {
      results[i].push_back(take(node));
      continue;
    }
    // Operands are lent to the node and given back: copies would double the memory.
    const std::vector<size_t> first = first_places(node.inputs);
    std::vector<ir::Type> in_types;
    std::vector<Tensor> operands(node.inputs.size());
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      in_types.push_back(graph.type(node.inputs[k]));
      if (first[k] == k)
        operands[k] = std::move(result(node.inputs[k]));
      else
        operands[k] = operands[first[k]];
    }
    const ir::OpInstance op{node.op, in_types, node.outputs, &node.attrs};
    const double flops = pool == nullptr ? 0 : cost_of(op, {&graph, &node}).flops;
    results[i] = evaluate_node(op, operands, flops, pool);
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (first[k] == k) result(node.inputs[k]) = std::move(operands[k]);
    for (const ir::ValueId id : node.inputs)
      if (last[static_cast<size_t>(id.node)] == i) results[static_cast<size_t>(id.node)].clear();
  }
  std::map<std::string, Tensor> outputs;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const ir::GraphOutput& out = graph.outputs()[i];
    if (is_named_again(graph, i))
      outputs[out.name] = result(out.value);
    else
      outputs[out.name] = std::move(result(out.value));
  }
  return outputs;
}

// What evaluate_node() takes beside operands and results.
double bytes_beside(const ir::OpInstance& op, double flops, int threads) {
  if (is_decomposed(*op.op, Definition::reference))
    return evaluation_cost(decomposition_of(op), threads).bytes - f64_bytes(op.in) -
           f64_bytes(op.out);
  const auto blocks = cut_into_blocks(op, flops, threads);
  return blocks ? bytes_of_copies(*blocks, threads) : 0;
}

}  // namespace

std::vector<Tensor> evaluate_op(const ir::OpInstance& op, std::span<const Tensor> inputs,
                                Definition definition) {
  if (!is_decomposed(*op.op, definition)) return by_reference(op, inputs);
  std::vector<Tensor> own(inputs.begin(), inputs.end());
  return by_decomposition(op, own, nullptr);
}

std::map<std::string, Tensor> evaluate(const ir::Graph& graph,
                                       const std::map<std::string, Tensor>& inputs,
                                       ThreadPool* pool) {
  const auto take = [&](const ir::Node& input) {
    const std::string& name = input.attrs.str("name");
    const auto given = inputs.find(name);
    if (given == inputs.end()) throw Error("evaluate: input '{}' is not given", name);
    if (static_cast<int64_t>(given->second.size()) != num_elements(input.outputs[0].shape))
      throw Error("evaluate: input '{}' is {}, got {} elements", name, to_string(input.outputs[0]),
                  given->second.size());
    return given->second;
  };
  return evaluate_nodes(graph, take, pool);
}

EvaluationCost evaluation_cost(const ir::Graph& graph, int threads) {
  const std::vector<ir::Node>& nodes = graph.nodes();
  const std::vector<size_t> last = last_uses(graph);
  EvaluationCost cost;
  double alive = 0;
  const auto hold = [&](double beside) { cost.bytes = std::max(cost.bytes, alive + beside); };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ir::Node& node = nodes[i];
    alive += f64_bytes(node.outputs);
    if (node.op == &ir::kInput) {
      hold(0);
      continue;
    }
    const std::vector<size_t> first = first_places(node.inputs);
    std::vector<ir::Type> in;
    double repeated = 0;
    std::set<int32_t> ended;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      in.push_back(graph.type(node.inputs[k]));
      if (first[k] != k) repeated += f64_bytes({&in.back(), 1});
      if (last[static_cast<size_t>(node.inputs[k].node)] == i) ended.insert(node.inputs[k].node);
    }
    const ir::OpInstance op{node.op, in, node.outputs, &node.attrs};
    const double flops = cost_of(op, {&graph, &node}).flops;
    cost.flops += flops;
    hold(repeated + bytes_beside(op, flops, threads));
    for (const int32_t each : ended) alive -= f64_bytes(nodes[static_cast<size_t>(each)].outputs);
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (is_named_again(graph, i)) alive += f64_bytes({&graph.type(graph.outputs()[i].value), 1});
  hold(0);
  return cost;
}

}  // namespace rhea::ops
