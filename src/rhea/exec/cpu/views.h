// Nodes that move no data: their result is the operand's memory read with another shape.
#pragma once
#include <optional>

#include "rhea/ir/graph.h"

namespace rhea::exec::cpu {

// reshape, stop_gradient, optimization_barrier, and the broadcasts and transposes that only move
// dims of size 1.
bool is_pure_view(const ir::Graph& graph, const ir::Node& node);

// Elements between two rows (dim 0) of a tensor without gaps; 0 for scalars and packed layouts.
int64_t natural_row_stride(const ir::Type& type);

// A part of a row-major tensor: it begins `offset` elements into the tensor; its rows are
// contiguous, and lie as far apart as the tensor's rows when `strided`, without gaps otherwise.
struct Piece {
  int64_t offset = 0;
  bool strided = false;
};
// The piece that a slice node reads. Empty when its rows are not contiguous in the operand.
// `row_stride` is the operand's.
std::optional<Piece> slice_piece(const ir::Type& operand, const ir::Node& slice,
                                 int64_t row_stride);
// The piece that operand `i` of a concatenate node fills.
std::optional<Piece> concatenate_piece(const ir::Graph& graph, const ir::Node& concatenate,
                                       size_t i);

}  // namespace rhea::exec::cpu
