// What may be part of a cluster, and how the values of its parts lie over the cluster's space.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "rhea/ir/graph.h"

namespace rhea::ops {

// The space of a cluster is the shape of its widest values. A cluster of elementwise ops runs over
// it in stretches of any length; one with row ops (ir::RowPlan), or with numbers of rows, in whole
// rows of the last dim.
struct Space {
  // Rows of more elements do not fit the cache in the number that a cluster needs.
  static constexpr int64_t kMaxRow = 16384;

  ir::Shape shape;
  bool rows = false;

  int64_t width() const { return rows ? shape.back() : 1; }
  // One number per row: the shape without its last dim.
  bool is_numbers(const ir::Shape& of) const;
};

// How an operand smaller than the space of the cluster is spread over it: element i of the space
// reads operand element (i / repeat) % period.
struct Spread {
  int64_t repeat = 1;
  int64_t period = 1;
};
// Of a broadcast_in_dim, if it is of this kind: scalars, vectors along leading or trailing dims.
std::optional<Spread> spread_of(const ir::Type& operand, const ir::Node& broadcast);

// What a node is to a cluster: nothing; a splat constant or a broadcast, which is copied into every
// cluster that reads it; an elementwise op; a row op. Values are f32, bf16, f16 or flags.
enum class Part : uint8_t { none, spread, element, rows };
Part part_of(const ir::Graph& graph, const ir::Node& node);

// Of a node that is Part::rows.
ir::RowPlan row_plan(const ir::Graph& graph, const ir::Node& node, Isa isa = Isa::plain);
// The letters of ir::RowPlan::roles.
inline char role_of_operand(std::string_view roles, size_t i) { return roles[i]; }
inline char role_of_result(std::string_view roles, size_t i) {
  return roles[roles.find('>') + 1 + i];
}

// The shape over which a part that is no spread runs: of its result, or of its rows.
const ir::Shape& extent_of(const ir::Graph& graph, const ir::Node& node);

// The space of a cluster of these nodes of a graph (ascending, each with a Part); other nodes are
// its operands. Empty when they cannot run together; `why` then says what is in the way.
std::optional<Space> space_of(const ir::Graph& graph, std::span<const int32_t> nodes,
                              std::string& why);

}  // namespace rhea::ops
