// Ops without a kernel of their own are built from simpler ones.
#include <fmt/format.h>

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/exec/cpu/program.h"
#include "rhea/exec/cpu/views.h"
#include "rhea/ir/op_def.h"
#include "rhea/ir/row_cells.h"
#include "rhea/passes/graph_copy.h"

namespace rhea::exec::cpu {
namespace {

bool needs_no_kernel(const ir::Graph& from, const ir::Node& node) {
  return node.op == &ir::kInput || node.op == &ir::kConstant || is_pure_view(from, node);
}

// Copies nodes [first, from.nodes().size()) of `from`; `map` already holds the ones before.
class Legalizer {
 public:
  explicit Legalizer(KernelChooser& kernels) : kernels_(kernels) {}

  ir::Graph run(const ir::Graph& from) {
    passes::GraphCopy copy(from, to_);
    for (size_t i = 0; i < from.nodes().size(); ++i) {
      const ir::Node& node = from.nodes()[i];
      copy.set(i, emit(from, node, copy.operands(node), 0));
    }
    copy.add_outputs();
    return std::move(to_);
  }

 private:
  std::vector<ir::Value> emit(const ir::Graph& from, const ir::Node& node,
                              const std::vector<ir::Value>& inputs, int depth) {
    if (needs_no_kernel(from, node) || kernels_.choose(from, node) != nullptr)
      return to_.add_like(from, node, inputs);
    if (depth == 16)
      throw Error("{}: its decomposition contains itself\n  in {}\n  at {}", node.op->name,
                  from.scope_name(node), from.location_name(node));

    // Decomposed in a graph of its own, whose nodes are then emitted one by one.
    ir::Graph body;
    std::vector<ir::Value> parameters;
    for (size_t i = 0; i < inputs.size(); ++i)
      parameters.push_back(body.input(fmt::format("p{}", i), inputs[i].type()));
    body.set_context(body.intern_scope(from.scope_name(node)),
                     body.intern_location(from.location_name(node)));
    std::vector<ir::Type> in;
    for (const ir::Value& input : inputs) in.push_back(input.type());
    const auto results = ir::call_decompose({node.op, in, node.outputs, &node.attrs}, body,
                                            parameters, {&from, &node});

    std::vector<bool> needed(body.nodes().size(), false);
    for (const ir::Value& result : results) needed[static_cast<size_t>(result.id.node)] = true;
    for (size_t i = body.nodes().size(); i-- > 0;) {
      if (!needed[i]) continue;
      for (const ir::ValueId id : body.nodes()[i].inputs)
        needed[static_cast<size_t>(id.node)] = true;
    }
    passes::GraphCopy copy(body, to_);
    for (size_t i = 0; i < inputs.size(); ++i) copy.set(i, {inputs[i]});
    for (size_t i = inputs.size(); i < body.nodes().size(); ++i) {
      if (!needed[i]) continue;
      const ir::Node& part = body.nodes()[i];
      copy.set(i, emit(body, part, copy.operands(part), depth + 1));
    }
    std::vector<ir::Value> values;
    for (const ir::Value& result : results) values.push_back(copy[result.id]);
    return values;
  }

  KernelChooser& kernels_;
  ir::Graph to_;
};

}  // namespace

ir::Graph legalize(const ir::Graph& graph, KernelChooser& kernels) {
  const bool legal = std::ranges::all_of(graph.nodes(), [&](const ir::Node& node) {
    return needs_no_kernel(graph, node) || kernels.choose(graph, node) != nullptr;
  });
  return legal ? graph : Legalizer(kernels).run(graph);
}

}  // namespace rhea::exec::cpu
