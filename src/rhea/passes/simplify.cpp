// One forward walk that rebuilds the graph with value numbering, after one backward walk that marks
// live nodes.
#include "rhea/passes/simplify.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"
#include "rhea/passes/graph_copy.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;
using ir::ValueId;

// A forward loss and the gradient op that computes it as well.
using MergedLosses = std::map<int32_t, int32_t>;

std::vector<bool> live_nodes(const Graph& graph, const MergedLosses& merged) {
  std::vector<bool> live(graph.nodes().size(), false);
  for (const auto& out : graph.outputs()) {
    const auto loss = merged.find(out.value.node);
    live[static_cast<size_t>(loss == merged.end() ? out.value.node : loss->second)] = true;
  }
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    if (node.op->has_side_effect) live[i] = true;
    if (!live[i]) continue;
    for (const ValueId input : node.inputs) live[static_cast<size_t>(input.node)] = true;
  }
  return live;
}

// The number of a splat constant.
std::optional<double> splat(Value value) {
  const Node& node = value.graph->node(value.id);
  if (node.op != &ir::kConstant) return {};
  return node.attrs.f64("value");
}

bool is_splat(Value value, double number) {
  const auto found = splat(value);
  return found && *found == number && std::signbit(*found) == std::signbit(number);
}

double round_to(double value, DType dtype) {
  double stored = 0;
  dispatch_dtype(dtype, [&]<class T>() {
    T element;
    store_from_f64(&element, dtype, 0, value);
    stored = load_as_f64(&element, dtype, 0);
  });
  return stored;
}

// f32 and f64 arithmetic on two splats; other dtypes compute in f32 and round, like the kernels.
std::optional<double> fold(const ir::OpDef* op, double a, double b, DType dtype) {
  if (!is_float(dtype)) return {};
  const auto compute = [&](auto x, auto y) -> std::optional<double> {
    if (op == &ops::kAdd) return static_cast<double>(x + y);
    if (op == &ops::kSubtract) return static_cast<double>(x - y);
    if (op == &ops::kMultiply) return static_cast<double>(x * y);
    if (op == &ops::kDivide) return static_cast<double>(x / y);
    return {};
  };
  const auto result =
      dtype == DType::f64 ? compute(a, b) : compute(static_cast<float>(a), static_cast<float>(b));
  if (!result) return {};
  return round_to(*result, dtype);
}

class Rebuild {
 public:
  explicit Rebuild(const Graph& from) : from_(from) {}

  Graph run() {
    find_merged_losses();
    const auto live = live_nodes(from_, merged_);
    for (size_t i = 0; i < from_.nodes().size(); ++i) {
      if (live[i]) copy_.set(i, visit(from_.nodes()[i]));
    }
    for (const auto& out : from_.outputs()) {
      const auto merged = merged_.find(out.value.node);
      to_.output(out.name, copy_[merged == merged_.end() ? out.value : ValueId{merged->second, 0}],
                 out.donates);
    }
    return std::move(to_);
  }

 private:
  // A loss that is only an output of the graph is taken from its gradient op, so that the logits
  // are formed once.
  void find_merged_losses() {
    std::map<std::vector<ValueId>, int32_t> losses;
    const auto& nodes = from_.nodes();
    for (int32_t i = 0; i < static_cast<int32_t>(nodes.size()); ++i) {
      const Node& node = nodes[static_cast<size_t>(i)];
      for (const ValueId input : node.inputs) {
        if (nodes[static_cast<size_t>(input.node)].op == &ops::kLinearCrossEntropy)
          losses.erase(nodes[static_cast<size_t>(input.node)].inputs);
      }
      if (node.op == &ops::kLinearCrossEntropy) losses[node.inputs] = i;
      if (node.op != &ops::kLinearCrossEntropyGrad) continue;
      const auto at = losses.find({node.inputs.begin(), node.inputs.end() - 1});
      if (at != losses.end() && nodes[static_cast<size_t>(at->second)].attrs == node.attrs)
        merged_[at->second] = i;
    }
  }

  const Node& made(Value value) const { return to_.node(value.id); }

  std::vector<Value> visit(const Node& node) {
    std::vector<Value> in = copy_.operands(node);
    if (const Value same = algebra(node, in); same.valid()) return {same};
    if (const auto number = constant(node, in)) {
      return numbered(
          node, ir::kConstant, {},
          {{"value", *number}, {"dtype", node.outputs[0].dtype}, {"shape", node.outputs[0].shape}});
    }
    if (node.op == &ir::kInput) return to_.add_like(from_, node, in);
    if (node.op == &ops::kAdd) {
      if (const Value sum = table_gradient(node, in); sum.valid()) return {sum};
    }
    if (node.op == &ops::kReshape && made(in[0]).op == &ops::kReshape) {
      in[0] = {&to_, made(in[0]).inputs[0]};
      if (in[0].type() == node.outputs[0]) return {in[0]};
    }
    if (node.op->has_side_effect) return to_.add_like(from_, node, in);
    return numbered(node, *node.op, in, node.attrs);
  }

  // The gradient of a table that is an embedding and a head: the few rows of the tokens are added
  // to the head's gradient where it lies, instead of a second table to the first. Same bits: a
  // row's tokens are summed before. Empty if the node is none.
  Value table_gradient(const Node& node, const std::vector<Value>& in) {
    for (size_t i = 0; i < 2; ++i) {
      const Node table = made(in[i]);
      if (table.op == &ops::kEmbeddingGrad && table.inputs.size() == 2 &&
          made(in[1 - i]).op != &ir::kConstant)
        return numbered(
            node, ops::kEmbeddingGrad,
            std::vector<Value>{{&to_, table.inputs[0]}, {&to_, table.inputs[1]}, in[1 - i]},
            table.attrs)[0];
    }
    return {};
  }

  // An existing value equal to the node's only result, or empty.
  Value algebra(const Node& node, std::span<const Value> in) const {
    const ir::OpDef* op = node.op;
    const auto same_type = [&] { return in[0].type() == node.outputs[0]; };
    if (op == &ops::kMultiply) {
      if (is_splat(in[1], 1)) return in[0];
      if (is_splat(in[0], 1)) return in[1];
    } else if (op == &ops::kDivide) {
      if (is_splat(in[1], 1)) return in[0];
    } else if (op == &ops::kAdd) {
      if (is_splat(in[1], -0.0)) return in[0];
      if (is_splat(in[0], -0.0)) return in[1];
    } else if (op == &ops::kSubtract) {
      if (is_splat(in[1], 0.0)) return in[0];
    } else if (op == &ops::kNegate) {
      if (made(in[0]).op == &ops::kNegate) return {&const_cast<Graph&>(to_), made(in[0]).inputs[0]};
    } else if (op == &ops::kConvert || op == &ops::kReshape || op == &ops::kSlice ||
               op == &ops::kPad) {
      if (same_type()) return in[0];
    } else if (op == &ops::kBroadcastInDim || op == &ops::kTranspose) {
      const auto& dims = node.attrs.list(op == &ops::kTranspose ? "permutation" : "dims");
      bool identity = same_type();
      for (size_t i = 0; i < dims.size(); ++i) identity &= dims[i] == static_cast<int64_t>(i);
      if (identity) return in[0];
    } else if (op == &ops::kConcatenate) {
      if (in.size() == 1) return in[0];
    }
    return {};
  }

  static std::optional<double> constant(const Node& node, std::span<const Value> in) {
    const ir::OpDef* op = node.op;
    if (op == &ops::kConvert || op == &ops::kReshape || op == &ops::kBroadcastInDim ||
        op == &ops::kSlice || op == &ops::kTranspose) {
      const auto number = splat(in[0]);
      if (!number) return {};
      const DType dtype = node.outputs[0].dtype;
      const bool truncates = is_float(in[0].dtype()) && !is_float(dtype);
      if (truncates && std::abs(*number) > 0x1p30) return {};
      return round_to(*number, dtype);
    }
    if (in.size() != 2 || node.outputs.size() != 1) return {};
    const auto a = splat(in[0]);
    const auto b = splat(in[1]);
    return a && b ? fold(op, *a, *b, node.outputs[0].dtype) : std::nullopt;
  }

  // The node under its value number: an equal earlier one, or a new one.
  std::vector<Value> numbered(const Node& like, const ir::OpDef& op, std::span<const Value> in,
                              const ir::Attrs& attrs) {
    std::string key(op.name);
    for (const Value& value : in) {
      key += '|';
      key += std::to_string(value.id.node);
      key += '.';
      key += std::to_string(value.id.output);
    }
    for (const auto& [name, attr] : attrs) {
      key += '|';
      key += name;
      key += '=';
      key += ir::to_string(attr);
    }
    const auto [at, added] = numbers_.try_emplace(std::move(key));
    if (added) at->second = to_.add_as(from_, like, op, in, attrs);
    return at->second;
  }

  const Graph& from_;
  Graph to_;
  GraphCopy copy_{from_, to_};
  MergedLosses merged_;
  std::unordered_map<std::string, std::vector<Value>> numbers_;
};

// Rules leave the operands of what they replace behind.
Graph without_dead_nodes(Graph&& graph) {
  const auto live = live_nodes(graph, {});
  if (std::find(live.begin(), live.end(), false) == live.end()) return std::move(graph);
  Graph result;
  GraphCopy copy(graph, result);
  for (size_t i = 0; i < live.size(); ++i) {
    if (live[i]) copy.add(i);
  }
  copy.add_outputs();
  return result;
}

}  // namespace

Graph simplify(const Graph& graph) { return without_dead_nodes(Rebuild(graph).run()); }

}  // namespace rhea::passes
