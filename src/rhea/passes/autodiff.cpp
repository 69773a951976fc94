// A reverse sweep over node ranges; decompositions are swept as ranges of their own.
#include "rhea/passes/autodiff.h"

#include <algorithm>
#include <map>
#include <optional>

#include "rhea/base/error.h"
#include "rhea/ir/row_cells.h"
#include "rhea/ops/ops.h"
#include "rhea/passes/direction.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;
using ir::ValueId;

class ReverseSweep {
 public:
  ReverseSweep(Graph& graph, std::span<const Value> wrt) : graph_(graph) {
    for (const Value& value : wrt) needed_.emplace(value.id, true);
  }

  void seed(Value value, Value cotangent) { cotangents_[value.id] = cotangent; }
  Value cotangent(ValueId id) const {
    const auto at = cotangents_.find(id);
    return at == cotangents_.end() ? Value{} : at->second;
  }

  // Visits nodes [begin, end) from the last to the first.
  void run(int32_t begin, int32_t end) {
    for (int32_t index = end - 1; index >= begin; --index) visit(index);
  }

 private:
  // True when a gradient towards some wrt can flow through the value.
  bool is_needed(ValueId id) {
    if (const auto at = needed_.find(id); at != needed_.end()) return at->second;
    // Iterative depth-first walk over operands: graphs are tens of thousands of nodes deep.
    std::vector<ValueId> stack = {id};
    while (!stack.empty()) {
      const ValueId top = stack.back();
      if (needed_.contains(top)) {
        stack.pop_back();
        continue;
      }
      bool ready = true;
      bool any = false;
      const Node& node = graph_.node(top);
      for (const ValueId input : node.inputs) {
        const auto at = needed_.find(input);
        if (at == needed_.end()) {
          stack.push_back(input);
          ready = false;
        } else {
          any |= at->second;
        }
      }
      if (!ready) continue;
      needed_[top] = any && is_float(graph_.type(top).dtype) && node.op != &ops::kStopGradient;
      stack.pop_back();
    }
    return needed_.at(id);
  }

  // What is added from here on belongs to the module and the line of `node`, as its gradient.
  void enter(const Node& node) {
    graph_.set_context(node.scope,
                       graph_.intern_location(gradient_line(graph_.location_name(node))));
  }

  void visit(int32_t index) {
    // Copies: the vector of nodes grows while cotangents are appended.
    const Node node = graph_.nodes()[static_cast<size_t>(index)];
    std::vector<Value> cotangents;
    bool any = false;
    for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) {
      join_slices({index, i}, node);
      cotangents.push_back(cotangent({index, i}));
      any |= cotangents.back().valid();
    }
    if (!any) return;
    bool wanted = false;
    for (const ValueId input : node.inputs) wanted |= is_needed(input);
    if (!wanted) return;

    const int32_t outer_scope = graph_.current_scope();
    enter(node);
    std::vector<Value> inputs, outputs;
    for (const ValueId input : node.inputs) inputs.push_back({&graph_, input});
    for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i)
      outputs.push_back({&graph_, {index, i}});
    // Only a cast accepts a wider cotangent than its result: that is how weight gradients stay f32.
    if (node.op != &ops::kConvert) {
      for (size_t i = 0; i < cotangents.size(); ++i) {
        if (cotangents[i].valid())
          cotangents[i] = ops::convert(cotangents[i], node.outputs[i].dtype);
      }
    }
    if (node.op == &ops::kSlice) {
      slices_[node.inputs[0]].push_back({node.attrs, cotangents[0]});
    } else if (node.op->vjp) {
      const auto results = ir::call_vjp(*node.op, {graph_, node.attrs, inputs, outputs, cotangents},
                                        {&graph_, &node});
      for (size_t i = 0; i < results.size(); ++i) {
        if (results[i].valid() && is_needed(inputs[i].id)) accumulate(inputs[i].id, results[i]);
      }
    } else if (node.op->decompose) {
      const auto begin = static_cast<int32_t>(graph_.nodes().size());
      std::vector<ir::Type> in;
      for (const Value& input : inputs) in.push_back(input.type());
      const auto results = ir::call_decompose({node.op, in, node.outputs, &node.attrs}, graph_,
                                              inputs, {&graph_, &node});
      const auto end = static_cast<int32_t>(graph_.nodes().size());
      for (size_t i = 0; i < results.size(); ++i) {
        if (cotangents[i].valid()) accumulate(results[i].id, cotangents[i]);
      }
      run(begin, end);
    } else {
      throw Error(
          "{} has no gradient: the row has neither vjp nor decomposition, and a gradient flows "
          "through it; give it one of them, or stop_gradient its operands\n  in {}\n  at {}",
          node.op->name, graph_.scope_name(node), graph_.location_name(node));
    }
    graph_.set_context(outer_scope, -1);
  }

  // Cotangents of slices of one value: joined when they tile one of its dims (the parts of a fused
  // projection), which is exact and needs no zeros; else each is padded to the whole and added.
  struct SliceCotangent {
    ir::Attrs attrs;  // start, limit
    Value cotangent;
  };

  void join_slices(ValueId id, const Node& node) {
    const auto at = slices_.find(id);
    if (at == slices_.end()) return;
    auto parts = std::move(at->second);
    slices_.erase(at);
    const int32_t outer_scope = graph_.current_scope();
    enter(node);
    const ir::Shape shape = graph_.type(id).shape;
    if (const auto dim = tiled_dim(parts, shape)) {
      std::vector<Value> values;
      for (const auto& part : parts) values.push_back(part.cotangent);
      accumulate(id, ops::concatenate(values, *dim));
    } else {
      for (const auto& part : parts) {
        std::vector<int64_t> high = shape;
        for (size_t d = 0; d < shape.size(); ++d) high[d] -= part.attrs.list("limit")[d];
        accumulate(id, ops::pad(part.cotangent, part.attrs.list("start"), high));
      }
    }
    graph_.set_context(outer_scope, -1);
  }

  // Sorts the parts along the dim that they tile; empty when they do not.
  static std::optional<int64_t> tiled_dim(std::vector<SliceCotangent>& parts,
                                          const ir::Shape& shape) {
    for (size_t d = 0; d < shape.size(); ++d) {
      std::sort(parts.begin(), parts.end(), [&](const auto& a, const auto& b) {
        return a.attrs.list("start")[d] < b.attrs.list("start")[d];
      });
      int64_t next = 0;
      bool tiles = true;
      for (const auto& part : parts) {
        tiles = tiles && part.attrs.list("start")[d] == next;
        next = part.attrs.list("limit")[d];
        for (size_t e = 0; e < shape.size(); ++e)
          tiles = tiles && (e == d || part.cotangent.shape()[e] == shape[e]);
      }
      if (tiles && next == shape[d]) return static_cast<int64_t>(d);
    }
    return {};
  }

  void accumulate(ValueId id, Value cotangent) {
    Value& sum = cotangents_[id];
    if (!sum.valid()) {
      sum = cotangent;
      return;
    }
    const bool keep = dtype_size(sum.dtype()) >= dtype_size(cotangent.dtype());
    const DType wide = keep ? sum.dtype() : cotangent.dtype();
    sum = ops::add(ops::convert(sum, wide), ops::convert(cotangent, wide));
  }

  Graph& graph_;
  std::map<ValueId, Value> cotangents_;
  std::map<ValueId, std::vector<SliceCotangent>> slices_;
  std::map<ValueId, bool> needed_;
};

}  // namespace

std::vector<Value> gradients(Graph& graph, Value loss, std::span<const Value> wrt) {
  if (!is_float(loss.dtype()) || loss.type().rank() != 0)
    throw Error("gradients: the loss must be a float scalar, got {}", ir::to_string(loss.type()));
  ReverseSweep sweep(graph, wrt);
  const auto end = static_cast<int32_t>(graph.nodes().size());
  sweep.seed(loss, graph.constant(1.0, loss.type()));
  sweep.run(0, end);
  std::vector<Value> results;
  for (const Value& value : wrt) results.push_back(sweep.cotangent(value.id));
  return results;
}

}  // namespace rhea::passes
