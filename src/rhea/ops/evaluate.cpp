// Reference evaluation of graphs.
#include "rhea/ops/evaluate.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/thread_pool.h"
#include "rhea/ir/row_cells.h"
#include "rhea/ops/cost.h"
#include "rhea/ops/factors.h"

namespace rhea::ops {

using ir::num_elements;
namespace {

constexpr double kLargeNode = 1e7;  // flops from which blocks are worth their copies
constexpr int64_t kBlocksOfAThread = 4;

std::vector<Tensor> by_reference(const ir::OpInstance& op, std::span<const Tensor> inputs) {
  std::vector<Tensor> results;
  for (const ir::Type& type : op.out)
    results.emplace_back(static_cast<size_t>(num_elements(type.shape)), 0.0);
  ir::call_reference(*op.op, {inputs, results, op.in, op.out, *op.attrs});
  return results;
}

std::vector<Tensor> by_decomposition(const ir::OpInstance& op, std::span<const Tensor> inputs,
                                     ThreadPool* pool) {
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
  std::map<std::string, Tensor> outputs = evaluate(graph, named, pool);
  std::vector<Tensor> results;
  for (size_t i = 0; i < values.size(); ++i)
    results.push_back(std::move(outputs.at(fmt::format("result{}", i))));
  return results;
}

std::vector<Tensor> by_definition(const ir::OpInstance& op, std::span<const Tensor> inputs,
                                  Definition definition, ThreadPool* pool) {
  const bool has_reference = static_cast<bool>(op.op->reference);
  const bool has_decomposition = static_cast<bool>(op.op->decompose);
  if (has_decomposition && (definition == Definition::decomposition || !has_reference))
    return by_decomposition(op, inputs, pool);
  if (!has_reference) throw Error("{}: has neither reference nor decomposition", op.op->name);
  return by_reference(op, inputs);
}

// A letter along which a node is cut: every result has it, so that blocks are joined and not added
// up. `units`: the parts into which each dim of the letter can be cut alike.
struct Cut {
  char letter = 0;
  int64_t units = 1;
};
Cut best_cut(const ir::OpInstance& op, const Factors& factors) {
  Cut best;
  if (!fits(factors, op.in, op.out)) return best;  // a wrong cell from outside
  for (const char letter : factors.out[0]) {
    if (factors.whole.contains(letter)) continue;
    const auto times = [&](const std::string& dims) { return std::ranges::count(dims, letter); };
    const bool joins = std::ranges::all_of(
        factors.out, [](auto n) { return n == 1; }, times);
    const bool cuts = std::ranges::all_of(
        factors.in, [](auto n) { return n <= 1; }, times);
    if (!joins || !cuts) continue;
    int64_t units = 0;  // gcd(0, n) is n
    const auto count = [&](const std::vector<std::string>& dims, std::span<const ir::Type> types) {
      for (size_t i = 0; i < dims.size(); ++i)
        for (size_t d = 0; d < dims[i].size(); ++d)
          if (dims[i][d] == letter) units = std::gcd(units, types[i].shape[d]);
    };
    count(factors.in, op.in);
    count(factors.out, op.out);
    if (units > best.units) best = {letter, units};
  }
  return best;
}

// Evaluates a node as several smaller ones at the same time.
std::vector<Tensor> in_blocks(const ir::OpInstance& op, std::span<const Tensor> inputs,
                              const Factors& factors, const Cut& along, ThreadPool& pool) {
  std::vector<Tensor> results;
  for (const ir::Type& type : op.out)
    results.emplace_back(static_cast<size_t>(num_elements(type.shape)), 0.0);
  const int64_t blocks = std::min(along.units, kBlocksOfAThread * pool.num_threads());
  pool.parallel_for(blocks, [&](int64_t first, int64_t last, int) {
    for (int64_t block = first; block < last; ++block) {
      // [begin, end) of a dim of `size`
      const auto range = [&](int64_t size) {
        const int64_t unit = size / along.units;
        return std::pair(along.units * block / blocks * unit,
                         along.units * (block + 1) / blocks * unit);
      };
      std::vector<ir::Type> in(op.in.begin(), op.in.end()), out(op.out.begin(), op.out.end());
      std::vector<Tensor> operands;
      for (size_t i = 0; i < in.size(); ++i) {
        const size_t dim = factors.in[i].find(along.letter);
        if (dim == std::string::npos) {
          operands.push_back(inputs[i]);
          continue;
        }
        const auto [begin, end] = range(in[i].shape[dim]);
        operands.push_back(cut(inputs[i], in[i].shape, dim, begin, end));
        in[i].shape[dim] = end - begin;
      }
      for (size_t r = 0; r < out.size(); ++r) {
        const auto [begin, end] = range(out[r].shape[factors.out[r].find(along.letter)]);
        out[r].shape[factors.out[r].find(along.letter)] = end - begin;
      }
      const ir::Attrs attrs = make_local(*op.attrs, op.out[0].shape, out[0].shape);
      const std::vector<Tensor> part = by_reference({op.op, in, out, &attrs}, operands);
      for (size_t r = 0; r < out.size(); ++r) {
        const size_t dim = factors.out[r].find(along.letter);
        const auto [begin, end] = range(op.out[r].shape[dim]);
        paste(part[r], op.out[r].shape, dim, begin, end, results[r]);
      }
    }
  });
  return results;
}

std::vector<Tensor> evaluate_node(const ir::OpInstance& op, std::span<const Tensor> inputs,
                                  double flops, ThreadPool* pool) {
  const bool is_large = pool != nullptr && pool->num_threads() > 1 && flops >= kLargeNode;
  if (is_large && op.op->reference && op.op->shard && !op.out.empty()) {
    const Factors factors = parse_factors(op.op->shard(op));
    const Cut along = best_cut(op, factors);
    if (along.units > 1) return in_blocks(op, inputs, factors, along, *pool);
  }
  return by_definition(op, inputs, Definition::reference, pool);
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

}  // namespace

std::vector<Tensor> evaluate_op(const ir::OpInstance& op, std::span<const Tensor> inputs,
                                Definition definition) {
  return by_definition(op, inputs, definition, nullptr);
}

std::map<std::string, Tensor> evaluate(const ir::Graph& graph,
                                       const std::map<std::string, Tensor>& inputs,
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
    // Operands are lent to the node and given back: copies would double the memory.
    std::vector<ir::Type> in_types;
    std::vector<Tensor> operands;
    const auto lent = [&](size_t k) {
      return std::find(node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(k),
                       node.inputs[k]) == node.inputs.begin() + static_cast<std::ptrdiff_t>(k);
    };
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      in_types.push_back(graph.type(node.inputs[k]));
      const auto before = std::ranges::find(node.inputs, node.inputs[k]) - node.inputs.begin();
      if (lent(k))
        operands.push_back(std::move(result(node.inputs[k])));
      else
        operands.push_back(operands[static_cast<size_t>(before)]);
    }
    const ir::OpInstance op{node.op, in_types, node.outputs, &node.attrs};
    const double flops = pool == nullptr ? 0 : cost_of(op, {&graph, &node}).flops;
    results[i] = evaluate_node(op, operands, flops, pool);
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (lent(k)) result(node.inputs[k]) = std::move(operands[k]);
    for (const ir::ValueId id : node.inputs)
      if (last[static_cast<size_t>(id.node)] == i) results[static_cast<size_t>(id.node)].clear();
  }
  std::map<std::string, Tensor> outputs;
  for (const ir::GraphOutput& out : graph.outputs()) outputs[out.name] = result(out.value);
  return outputs;
}

EvaluationCost evaluation_cost(const ir::Graph& graph) {
  const std::vector<ir::Node>& nodes = graph.nodes();
  const std::vector<size_t> last = last_uses(graph);
  const auto bytes_of = [&](const ir::Node& node) {
    double bytes = 0;
    for (const ir::Type& type : node.outputs)
      bytes += static_cast<double>(sizeof(double)) * static_cast<double>(num_elements(type.shape));
    return bytes;
  };
  EvaluationCost cost;
  double alive = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ir::Node& node = nodes[i];
    alive += bytes_of(node);
    cost.bytes = std::max(cost.bytes, alive);
    if (node.op == &ir::kInput) continue;
    std::vector<ir::Type> in;
    std::set<int32_t> ended;
    for (const ir::ValueId id : node.inputs) {
      in.push_back(graph.type(id));
      if (last[static_cast<size_t>(id.node)] == i) ended.insert(id.node);
    }
    cost.flops += cost_of({node.op, in, node.outputs, &node.attrs}, {&graph, &node}).flops;
    for (const int32_t each : ended) alive -= bytes_of(nodes[static_cast<size_t>(each)]);
  }
  return cost;
}

}  // namespace rhea::ops
