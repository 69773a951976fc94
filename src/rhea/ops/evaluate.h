// Evaluates graphs in f64, one node at a time, without kernels and without rounding to the types in
// between: what tests compare everything else with.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rhea/ir/graph.h"

namespace rhea {
class ThreadPool;
}

namespace rhea::ops {

// A row-major tensor of any type; integers and flags are numbers too (exact up to 2^53).
using Tensor = std::vector<double>;

// The results of the named outputs. With a pool, large nodes are evaluated in blocks, cut as their
// rows' shard cells allow (ops/blocks.h), so that several threads call a row's reference at the
// same time; what cannot be cut may use the pool itself. The bits are the same. Throws Error where
// an input is absent or has another size, or where a row has neither reference nor decomposition.
std::map<std::string, Tensor> evaluate(const ir::Graph& graph,
                                       const std::map<std::string, Tensor>& inputs,
                                       ThreadPool* pool = nullptr);

// What evaluate() takes for a graph with that many threads: floating-point operations by the costs
// of its nodes, and the bytes of the tensors that are alive at the same time, copies of inputs and
// of what blocks share included. Not counted is what references take for themselves.
struct EvaluationCost {
  double flops = 0, bytes = 0;
};
EvaluationCost evaluation_cost(const ir::Graph& graph, int threads = 1);

enum class Definition { reference, decomposition };
// The results of one op; by its other definition where it lacks the one that is asked for.
std::vector<Tensor> evaluate_op(const ir::OpInstance& op, std::span<const Tensor> inputs,
                                Definition definition = Definition::reference);

}  // namespace rhea::ops
