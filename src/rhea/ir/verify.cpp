#include "rhea/ir/verify.h"

#include <algorithm>
#include <set>

#include "rhea/base/error.h"

namespace rhea::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void run() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) check_node(n);
    check_inputs();
    check_outputs();
  }

 private:
  [[noreturn]] void fail(size_t n, const std::string& what) const {
    const Node& node = graph_.nodes()[n];
    const std::string& scope = graph_.scope_name(node);
    throw Error("invalid graph: node {} ({}): {}\n  in {}\n  at {}", n, node.op->name, what,
                scope.empty() ? "(no module)" : scope, graph_.location_name(node));
  }

  bool exists(ValueId id, size_t before) const {
    return id.node >= 0 && static_cast<size_t>(id.node) < before && id.output >= 0 &&
           static_cast<size_t>(id.output) <
               graph_.nodes()[static_cast<size_t>(id.node)].outputs.size();
  }

  void check_node(size_t n) const {
    const Node& node = graph_.nodes()[n];
    std::vector<Type> in;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (!exists(id, n))
        fail(n, fmt::format("operand {} is result {} of node {}, which does not come before it", i,
                            id.output, id.node));
      in.push_back(graph_.type(id));
    }
    std::vector<Type> out;
    try {
      out = node.op->infer(in, node.attrs);
    } catch (const Error& error) {
      fail(n, error.what());
    }
    if (out.size() != node.outputs.size())
      fail(n, fmt::format("has {} results, its row infers {}", node.outputs.size(), out.size()));
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i] != node.outputs[i])
        fail(n, fmt::format("result {} is {}, its row infers {}", i, to_string(node.outputs[i]),
                            to_string(out[i])));
    }
  }

  void check_inputs() const {
    std::set<std::string_view> names;
    for (const GraphInput& input : graph_.inputs()) {
      if (!names.insert(input.name).second)
        throw Error("invalid graph: two inputs are called '{}'", input.name);
      if (!exists(input.value, graph_.nodes().size()) || graph_.node(input.value).op != &kInput)
        throw Error("invalid graph: input '{}' is no input node", input.name);
    }
  }

  void check_outputs() const {
    std::set<std::string_view> names, donated;
    for (const GraphOutput& out : graph_.outputs()) {
      if (!names.insert(out.name).second)
        throw Error("invalid graph: two outputs are called '{}'", out.name);
      if (!exists(out.value, graph_.nodes().size()))
        throw Error("invalid graph: output '{}' is no value of the graph", out.name);
      if (out.donates.empty()) continue;
      const GraphInput* input = graph_.find_input(out.donates);
      if (input == nullptr)
        throw Error(
            "invalid graph: output '{}' takes the buffer of input '{}', which does not exist",
            out.name, out.donates);
      if (graph_.type(input->value) != graph_.type(out.value))
        throw Error("invalid graph: output '{}' is {}, but takes the buffer of input '{}', {}",
                    out.name, to_string(graph_.type(out.value)), out.donates,
                    to_string(graph_.type(input->value)));
      if (!donated.insert(out.donates).second)
        throw Error("invalid graph: two outputs take the buffer of input '{}'", out.donates);
      check_reads(out, input->value);
    }
  }

  // Readers of a donated input must be able to run before the node that makes the new value.
  void check_reads(const GraphOutput& out, ValueId input) const {
    const auto writer = static_cast<size_t>(out.value.node);
    std::vector<bool> needs_writer(graph_.nodes().size(), false);
    if (out.value == input) return;
    needs_writer[writer] = true;
    for (size_t n = writer + 1; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      for (const ValueId id : node.inputs) {
        if (needs_writer[static_cast<size_t>(id.node)]) needs_writer[n] = true;
      }
      if (needs_writer[n] && std::ranges::find(node.inputs, input) != node.inputs.end())
        fail(n, fmt::format("reads input '{}' after output '{}' has taken its buffer", out.donates,
                            out.name));
    }
  }

  const Graph& graph_;
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace rhea::ir
