// Forward over the nodes for what is a gradient, backward for what becomes of it.
#include "rhea/passes/direction.h"

#include <utility>

#include "rhea/ops/ops.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::ValueId;

constexpr std::string_view kGradient = " (gradient)";
constexpr std::string_view kRecomputed = " (recomputed)";

std::string with_word(std::string_view location, std::string_view word) {
  return location.ends_with(word) ? std::string(location) : std::string(location).append(word);
}

// One FQN is in the other, or both are one: "layers.0.attention" and "layers.0.attention.wq".
bool is_same_module(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && (a.empty() || a.size() == b.size() || b[a.size()] == '.');
}

// What the readers of a value are.
struct Readers {
  bool any = false;
  bool only_weight = true;  // the graph's output, or weight gradients of the same module
};

class Gradients {
 public:
  Gradients(const Graph& graph, std::vector<Direction>& directions)
      : graph_(graph), directions_(directions) {
    for (const Node& node : graph.nodes()) readers_.emplace_back(node.outputs.size());
    for (const auto& out : graph.outputs()) of(out.value).any = true;
  }

  void tell_apart() {
    for (size_t i = readers_.size(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      if (directions_[i] == Direction::input_gradient) directions_[i] = direction_of(i);
      for (const ValueId id : node.inputs) {
        Readers& readers = of(id);
        readers.any = true;
        readers.only_weight =
            readers.only_weight && directions_[i] == Direction::weight_gradient &&
            is_same_module(graph_.scope_name(node), graph_.scope_name(graph_.node(id)));
      }
    }
  }

 private:
  Readers& of(ValueId id) {
    return readers_[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)];
  }

  Direction direction_of(size_t i) const {
    if (graph_.nodes()[i].op == &ops::kLinearCrossEntropyGrad) return Direction::loss_and_gradients;
    bool weight = false, input = false;
    for (const Readers& result : readers_[i]) {
      weight = weight || (result.any && result.only_weight);
      input = input || (result.any && !result.only_weight);
    }
    if (weight && input) return Direction::both_gradients;
    return weight ? Direction::weight_gradient : Direction::input_gradient;
  }

  const Graph& graph_;
  std::vector<Direction>& directions_;
  std::vector<std::vector<Readers>> readers_;  // by node and result
};

}  // namespace

std::string_view name_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return "forward";
    case Direction::recompute:
      return "recompute";
    case Direction::input_gradient:
      return "input gradient";
    case Direction::weight_gradient:
      return "weight gradient";
    case Direction::both_gradients:
      return "input and weight gradient";
    case Direction::loss_and_gradients:
      return "loss and gradients";
  }
  return "";
}

std::string gradient_line(std::string_view location) { return with_word(location, kGradient); }
std::string recomputed_line(std::string_view location) { return with_word(location, kRecomputed); }

std::vector<Direction> directions(const Graph& graph) {
  std::vector<Direction> result;
  result.reserve(graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    const std::string& line = graph.location_name(node);
    bool gradient = line.ends_with(kGradient) && !node.inputs.empty();
    for (const ValueId id : node.inputs)
      gradient = gradient || result[static_cast<size_t>(id.node)] == Direction::input_gradient;
    result.push_back(gradient                      ? Direction::input_gradient
                     : line.ends_with(kRecomputed) ? Direction::recompute
                                                   : Direction::forward);
  }
  Gradients(graph, result).tell_apart();
  return result;
}

}  // namespace rhea::passes
