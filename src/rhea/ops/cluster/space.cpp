#include "rhea/ops/cluster/space.h"

#include <fmt/format.h>

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

// Values of these types are exact in f32 tiles.
bool fits_tile(const ir::Type& type) {
  return (type.dtype == DType::f32 || type.dtype == DType::bf16 || type.dtype == DType::f16 ||
          type.dtype == DType::boolean) &&
         type.layout == ir::Layout::row_major;
}

bool is_element(const ir::Graph& graph, const ir::Node& node) {
  if (node.op->tile[0] == nullptr || node.inputs.size() > 3 || node.outputs.size() != 1)
    return false;
  const ir::Type& result = node.outputs[0];
  for (const ir::ValueId id : node.inputs) {
    if (graph.type(id).shape != result.shape) return false;
  }
  // Flags are 0 and 1 in tiles: only these ops make or read them so.
  const std::string_view op = node.op->name;
  if (result.dtype == DType::boolean) return op == "compare";
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (graph.type(node.inputs[i]).dtype == DType::boolean &&
        !(op == "convert" || (op == "select" && i == 0)))
      return false;
  }
  return true;
}

bool is_rows(const ir::Graph& graph, const ir::Node& node) {
  if (!node.op->rows || node.inputs.size() > 4 || node.outputs.size() > 3) return false;
  const std::string_view roles = row_plan(graph, node).roles;
  if (roles.empty()) return false;
  const ir::Shape& shape = extent_of(graph, node);
  if (shape.size() < 2 || ir::num_elements(shape) == 0 || shape.back() > Space::kMaxRow)
    return false;
  const auto fits = [&](const ir::Type& type, char role) {
    return role == 'm' ? type.layout == ir::Layout::row_major
                       : fits_tile(type) && type.dtype != DType::boolean;
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!fits(graph.type(node.inputs[i]), role_of_operand(roles, i))) return false;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!fits(node.outputs[i], role_of_result(roles, i))) return false;
  }
  return true;
}

// Does this broadcast repeat one number along each row of its result?
bool is_along_rows(const ir::Node& broadcast) {
  const auto& dims = broadcast.attrs.list("dims");
  if (dims.size() + 1 != broadcast.outputs[0].shape.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

class Checker {
 public:
  Checker(const ir::Graph& graph, std::span<const int32_t> nodes) : graph_(graph), nodes_(nodes) {}

  std::optional<Space> run(std::string& why) {
    why.clear();
    choose();
    for (const int32_t n : nodes_) {
      const ir::Node& node = graph_.nodes()[static_cast<size_t>(n)];
      if (std::string reason = check(node); !reason.empty()) {
        why = fmt::format("{}: {}", node.op->name, reason);
        return std::nullopt;
      }
    }
    return space_;
  }

 private:
  // The widest extent of all parts.
  void choose() {
    bool first = true, has_row_ops = false;
    size_t smallest = 0;
    for (const int32_t n : nodes_) {
      const ir::Node& node = graph_.nodes()[static_cast<size_t>(n)];
      const Part part = part_of(graph_, node);
      if (part == Part::spread) continue;
      const ir::Shape& extent = extent_of(graph_, node);
      if (first || extent.size() > space_.shape.size()) space_.shape = extent;
      smallest = first ? extent.size() : std::min(smallest, extent.size());
      has_row_ops |= part == Part::rows;
      first = false;
    }
    space_.rows = has_row_ops || smallest < space_.shape.size();
  }

  const ir::Node* inside(ir::ValueId id) const {
    return std::ranges::binary_search(nodes_, id.node) ? &graph_.node(id) : nullptr;
  }
  // Sums over rows are complete when the last tile has run.
  bool is_sum(ir::ValueId id) const {
    const ir::Node* maker = inside(id);
    return maker != nullptr && part_of(graph_, *maker) == Part::rows &&
           role_of_result(row_plan(graph_, *maker).roles, static_cast<size_t>(id.output)) == 's';
  }

  std::string check(const ir::Node& node) const {
    const Part part = part_of(graph_, node);
    if (part == Part::none) return "cannot run on tiles";
    const ir::Shape& extent =
        part == Part::spread ? node.outputs[0].shape : extent_of(graph_, node);
    const bool whole = extent == space_.shape;
    if (!whole && (part == Part::rows || !space_.is_numbers(extent)))
      return fmt::format("runs over {} in a cluster over {}", ir::to_string(extent),
                         ir::to_string(space_.shape));
    if (space_.rows && (space_.shape.back() > Space::kMaxRow || space_.shape.back() == 0))
      return fmt::format("rows of {} elements do not fit a tile", space_.shape.back());
    for (const ir::ValueId id : node.inputs) {
      if (is_sum(id)) return "reads a sum over rows before it is complete";
    }
    if (part == Part::spread && !node.inputs.empty() && inside(node.inputs[0]) != nullptr &&
        !(whole && is_along_rows(node)))
      return "spreads a value of the cluster other than along rows";
    if (part == Part::rows) {
      const ir::RowPlan plan = row_plan(graph_, node);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const char role = role_of_operand(plan.roles, i);
        if ((role == 'v' || role == 'm') && inside(node.inputs[i]) != nullptr)
          return fmt::format("operand {} must come from outside of the cluster", i);
      }
    }
    return "";
  }

  const ir::Graph& graph_;
  std::span<const int32_t> nodes_;
  Space space_;
};

}  // namespace

bool Space::is_numbers(const ir::Shape& of) const {
  return rows && of.size() + 1 == shape.size() && std::equal(of.begin(), of.end(), shape.begin());
}

std::optional<Spread> spread_of(const ir::Type& operand, const ir::Node& broadcast) {
  const ir::Shape& shape = broadcast.outputs[0].shape;
  const auto& dims = broadcast.attrs.list("dims");
  // Dims of the result over which the operand varies; they must lie side by side, in order.
  int64_t first = -1, last = -1, period = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (operand.shape[i] == 1) continue;
    if (first < 0) first = dims[i];
    if (last >= 0) {
      for (int64_t d = last + 1; d < dims[i]; ++d) {
        if (shape[static_cast<size_t>(d)] != 1) return std::nullopt;
      }
    }
    if (dims[i] <= last) return std::nullopt;
    last = dims[i];
    period *= operand.shape[i];
  }
  Spread spread{1, period};
  if (first < 0) spread.repeat = std::max<int64_t>(1, ir::num_elements(shape));
  for (int64_t d = last + 1; first >= 0 && d < static_cast<int64_t>(shape.size()); ++d)
    spread.repeat *= shape[static_cast<size_t>(d)];
  return spread;
}

Part part_of(const ir::Graph& graph, const ir::Node& node) {
  if (node.op == &ir::kInput) return Part::none;
  if (is_rows(graph, node)) return Part::rows;
  if (node.outputs.size() != 1 || !fits_tile(node.outputs[0])) return Part::none;
  if (node.op == &ir::kConstant) return Part::spread;
  for (const ir::ValueId id : node.inputs) {
    if (!fits_tile(graph.type(id))) return Part::none;
  }
  if (node.op->name == "broadcast_in_dim")
    return spread_of(graph.type(node.inputs[0]), node) ? Part::spread : Part::none;
  return is_element(graph, node) ? Part::element : Part::none;
}

ir::RowPlan row_plan(const ir::Graph& graph, const ir::Node& node, Isa isa) {
  std::vector<ir::Type> in;
  for (const ir::ValueId id : node.inputs) in.push_back(graph.type(id));
  ir::RowPlan plan = node.op->rows({node.op, in, node.outputs, &node.attrs}, isa);
  if (plan.roles.empty()) return plan;
  const size_t arrow = plan.roles.find("->");
  if (arrow != in.size() || plan.roles.size() != in.size() + 2 + node.outputs.size() ||
      plan.roles.substr(0, arrow).find('r') == std::string_view::npos || plan.run == nullptr)
    throw Error(
        "{}: rows gives the roles '{}'{} for {} operands and {} results; expected a letter for "
        "each "
        "(ir::RowPlan), an r among the operands, and run",
        node.op->name, plan.roles, plan.run == nullptr ? " without run" : "", in.size(),
        node.outputs.size());
  return plan;
}

const ir::Shape& extent_of(const ir::Graph& graph, const ir::Node& node) {
  if (!node.op->rows) return node.outputs[0].shape;
  const std::string_view roles = row_plan(graph, node).roles;
  const size_t rows = roles.find('r');
  RHEA_CHECK(rows < node.inputs.size(), "{}: row roles '{}' name no rows", node.op->name, roles);
  return graph.type(node.inputs[rows]).shape;
}

std::optional<Space> space_of(const ir::Graph& graph, std::span<const int32_t> nodes,
                              std::string& why) {
  return Checker(graph, nodes).run(why);
}

}  // namespace rhea::ops
