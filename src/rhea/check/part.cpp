// Cutting a part out of a traced graph, and its gradients.
#include "rhea/check/part.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"
#include "rhea/passes/autodiff.h"

namespace rhea::check {
namespace {

using ir::Value;
using ir::ValueId;

class Cutter {
 public:
  Cutter(const ir::Graph& whole, const PartOptions& options) : whole_(whole) {
    for (size_t i = 0; i < options.arguments.size(); ++i) {
      const Value& argument = options.arguments[i];
      if (!argument.valid()) continue;
      const bool number = is_float(argument.dtype());
      borders_.emplace(argument.id, number ? fmt::format("x{}", i) : std::string());
    }
  }

  // `inside`: still between arguments and results.
  Value copy(ValueId id, bool inside) {
    if (const auto at = made_.find(id); at != made_.end()) return at->second;
    const ir::Node& node = whole_.node(id);
    if (node.op != &ir::kInput && node.op != &ir::kConstant) {
      if (const auto border = borders_.find(id); border != borders_.end()) {
        if (!border->second.empty()) return made_[id] = cut(id, border->second);
        inside = false;
      }
      if (!inside && is_float(whole_.type(id).dtype)) return made_[id] = cut(id, outside_name(id));
    }
    std::vector<Value> operands;
    for (const ValueId operand : node.inputs) operands.push_back(copy(operand, inside));
    const std::vector<Value> results = part_.add_like(whole_, node, operands);
    for (size_t i = 0; i < results.size(); ++i)
      made_[{id.node, static_cast<int32_t>(i)}] = results[i];
    return made_.at(id);
  }

  ir::Graph& part() { return part_; }

 private:
  Value cut(ValueId id, const std::string& name) {
    if (const auto* input = part_.find_input(name)) return part_.value(input->value);
    return part_.input(name, whole_.type(id));
  }

  // The same for the same value in every graph that has it: scope, op and how many of that op come
  // before it in the scope.
  std::string outside_name(ValueId id) const {
    const ir::Node& node = whole_.node(id);
    int before = 0;
    for (int32_t n = 0; n < id.node; ++n) {
      const ir::Node& other = whole_.nodes()[static_cast<size_t>(n)];
      if (other.op == node.op && other.scope == node.scope) ++before;
    }
    return fmt::format("{}/{}.{}.{}", whole_.scope_name(node), node.op->name, before, id.output);
  }

  const ir::Graph& whole_;
  ir::Graph part_;
  std::map<ValueId, std::string> borders_;  // name of the input; empty: computed outside
  std::map<ValueId, Value> made_;
};

// Sum over the results of cotangent times result.
Value weighted_sum(ir::Graph& graph, std::span<const Value> results) {
  Value sum;
  for (size_t r = 0; r < results.size(); ++r) {
    const Value y = results[r];
    if (!is_float(y.dtype())) continue;
    Value product = ops::convert(y * graph.input(fmt::format("dy{}", r), y.type()), DType::f32);
    std::vector<int64_t> dims(y.shape().size());
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int64_t>(d);
    if (!dims.empty()) product = ops::reduce_sum(product, dims);
    sum = sum.valid() ? sum + product : product;
  }
  return sum;
}

}  // namespace

ir::Graph cut_part(const ir::Graph& whole, const PartOptions& options) {
  Cutter cutter(whole, options);
  std::vector<Value> results;
  for (const Value& result : options.results) results.push_back(cutter.copy(result.id, true));
  ir::Graph graph = std::move(cutter.part());
  for (size_t r = 0; r < results.size(); ++r) {
    results[r].graph = &graph;
    graph.output(fmt::format("y{}", r), results[r]);
  }
  if (!options.gradients) return graph;

  std::vector<std::pair<std::string, Value>> wanted;
  for (size_t i = 0; i < options.arguments.size(); ++i) {
    const std::string name = fmt::format("x{}", i);
    if (const auto* input = graph.find_input(name))
      wanted.emplace_back("d" + name, graph.value(input->value));
  }
  for (const nn::Parameter& parameter : options.parameters) {
    if (const auto* input = graph.find_input(parameter.fqn))
      wanted.emplace_back("d " + parameter.fqn, graph.value(input->value));
  }
  const Value sum = weighted_sum(graph, results);
  if (!sum.valid() || wanted.empty()) return graph;
  std::vector<Value> wrt;
  for (const auto& entry : wanted) wrt.push_back(entry.second);
  const std::vector<Value> gradients = passes::gradients(graph, sum, wrt);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (gradients[i].valid()) graph.output(wanted[i].first, gradients[i]);
  }
  return graph;
}

bool only_moves(const ir::Graph& graph) {
  constexpr std::string_view kMoves[] = {"input",     "constant",        "rope",        "reshape",
                                         "transpose", "slice",           "concatenate", "pad",
                                         "iota",      "broadcast_in_dim"};
  return std::ranges::all_of(graph.nodes(), [&](const ir::Node& node) {
    return std::ranges::find(kMoves, node.op->name) != std::end(kMoves);
  });
}

}  // namespace rhea::check
