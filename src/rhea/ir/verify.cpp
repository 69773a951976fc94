// Checks between passes.
#include "rhea/ir/verify.h"

#include <fmt/core.h>

#include <set>

#include "rhea/base/error.h"
#include "rhea/ir/print.h"

namespace rhea::ir {
namespace {

std::string at_node(const Graph& graph, int32_t node) {
  return fmt::format("\n  {}", to_text(graph, node));
}

void check_operands(const Graph& graph, int32_t index) {
  for (const ValueId id : graph.nodes()[static_cast<size_t>(index)].inputs) {
    if (id.node < 0 || id.node >= index) {
      throw Error("verify: node %{} reads a result of %{}, which does not come before it", index,
                  id.node);
    }
    const auto count = static_cast<int32_t>(graph.node(id).outputs.size());
    if (id.output < 0 || id.output >= count) {
      throw Error("verify: node %{} reads result {} of %{}, which has {}", index, id.output,
                  id.node, count);
    }
  }
}

void check_attributes(const Graph& graph, int32_t index) {
  const Node& node = graph.nodes()[static_cast<size_t>(index)];
  for (const AttrSpec& spec : node.op->attrs) {
    const Attr* attr = node.attrs.find(spec.name);
    if (attr == nullptr || attr->index() != static_cast<size_t>(spec.kind)) {
      throw Error("verify: attribute '{}' of '{}' is {}{}", spec.name, node.op->name,
                  attr == nullptr ? "absent" : "of another kind", at_node(graph, index));
    }
  }
  for (const auto& [name, value] : node.attrs) {
    bool known = false;
    for (const AttrSpec& spec : node.op->attrs) known |= spec.name == name;
    if (!known) {
      throw Error("verify: '{}' has no attribute '{}'{}", node.op->name, name,
                  at_node(graph, index));
    }
  }
}

void check_types(const Graph& graph, int32_t index) {
  const Node& node = graph.nodes()[static_cast<size_t>(index)];
  std::vector<Type> in;
  for (const ValueId id : node.inputs) in.push_back(graph.type(id));
  std::vector<Type> inferred;
  try {
    inferred = node.op->infer(in, node.attrs);
  } catch (const Error& error) {
    throw Error("verify: the operands do not fit '{}': {}{}", node.op->name, error.what(),
                at_node(graph, index));
  }
  if (inferred != node.outputs) {
    std::string types;
    for (const Type& type : inferred) types += (types.empty() ? "" : ", ") + to_string(type);
    throw Error("verify: '{}' gives {} by inference{}", node.op->name, types,
                at_node(graph, index));
  }
}

void check_inputs(const Graph& graph) {
  std::set<std::string> names;
  for (const GraphInput& input : graph.inputs()) {
    const bool exists = input.value.node >= 0 &&
                        input.value.node < static_cast<int32_t>(graph.nodes().size()) &&
                        graph.node(input.value).op == &kInput;
    if (!exists || graph.node(input.value).attrs.str("name") != input.name)
      throw Error("verify: input '{}' is not the node of that name", input.name);
    if (input.name.empty()) throw Error("verify: an input has no name");
    if (!names.insert(input.name).second)
      throw Error("verify: two inputs have the name '{}'", input.name);
  }
  size_t count = 0;
  for (const Node& node : graph.nodes()) count += node.op == &kInput;
  if (count != names.size())
    throw Error("verify: {} input nodes, but {} inputs are listed", count, names.size());
}

void check_outputs(const Graph& graph) {
  std::set<std::string> names, donated;
  for (const GraphOutput& output : graph.outputs()) {
    const ValueId id = output.value;
    if (!names.insert(output.name).second)
      throw Error("verify: two outputs have the name '{}'", output.name);
    if (id.node < 0 || id.node >= static_cast<int32_t>(graph.nodes().size()) || id.output < 0 ||
        id.output >= static_cast<int32_t>(graph.node(id).outputs.size())) {
      throw Error("verify: output '{}' names %{}.{}, which does not exist", output.name, id.node,
                  id.output);
    }
    if (output.donates.empty()) continue;
    const GraphInput* input = graph.find_input(output.donates);
    if (input == nullptr) {
      throw Error("verify: output '{}' donates '{}', which is no input", output.name,
                  output.donates);
    }
    if (!donated.insert(output.donates).second)
      throw Error("verify: input '{}' is donated to two outputs", output.donates);
    if (graph.type(id) != graph.type(input->value)) {
      throw Error("verify: output '{}' is {}, but the input '{}' that it donates is {}",
                  output.name, to_string(graph.type(id)), output.donates,
                  to_string(graph.type(input->value)));
    }
    if (graph.node(id).op == &kInput && id != input->value) {
      throw Error("verify: output '{}' is another input than '{}', which it donates; add a copy",
                  output.name, output.donates);
    }
  }
}

// Rule 6.
void check_donations(const Graph& graph) {
  const size_t count = graph.nodes().size();
  std::vector<std::vector<int32_t>> after(count);  // arrows to nodes that run later
  std::vector<int> waits_for(count, 0);
  const auto arrow = [&](int32_t from, int32_t to) {
    after[static_cast<size_t>(from)].push_back(to);
    ++waits_for[static_cast<size_t>(to)];
  };
  std::vector<std::vector<int32_t>> readers(count);
  for (int32_t i = 0; i < static_cast<int32_t>(count); ++i) {
    for (const ValueId id : graph.nodes()[static_cast<size_t>(i)].inputs) {
      arrow(id.node, i);
      readers[static_cast<size_t>(id.node)].push_back(i);
    }
  }
  for (const GraphOutput& output : graph.outputs()) {
    if (output.donates.empty()) continue;
    const ValueId input = graph.find_input(output.donates)->value;
    if (output.value == input) continue;  // nothing is written
    for (const GraphOutput& other : graph.outputs()) {
      if (other.value == input) {
        throw Error("verify: output '{}' is the input '{}', whose memory output '{}' overwrites",
                    other.name, output.donates, output.name);
      }
    }
    for (const int32_t reader : readers[static_cast<size_t>(input.node)]) {
      if (reader != output.value.node) arrow(reader, output.value.node);
    }
  }
  std::vector<int32_t> ready;
  for (size_t i = 0; i < count; ++i) {
    if (waits_for[i] == 0) ready.push_back(static_cast<int32_t>(i));
  }
  size_t done = 0;
  while (!ready.empty()) {
    const int32_t node = ready.back();
    ready.pop_back();
    ++done;
    for (const int32_t next : after[static_cast<size_t>(node)]) {
      if (--waits_for[static_cast<size_t>(next)] == 0) ready.push_back(next);
    }
  }
  if (done == count) return;
  for (const GraphOutput& output : graph.outputs()) {
    if (output.donates.empty() || waits_for[static_cast<size_t>(output.value.node)] == 0) continue;
    throw Error(
        "verify: output '{}' overwrites the input '{}', but a node that needs the result "
        "reads that input{}",
        output.name, output.donates, at_node(graph, output.value.node));
  }
}

}  // namespace

void verify(const Graph& graph) {
  for (int32_t i = 0; i < static_cast<int32_t>(graph.nodes().size()); ++i) {
    check_operands(graph, i);
    check_attributes(graph, i);
    check_types(graph, i);
  }
  check_inputs(graph);
  check_outputs(graph);
  check_donations(graph);
}

}  // namespace rhea::ir
