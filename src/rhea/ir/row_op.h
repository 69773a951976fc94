// How an op runs on tiles of whole rows: what lets a cluster hold norms, reductions and rotations
// beside elementwise ops.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

namespace rhea::ir {

// Rows [first, first + rows) of a tensor seen as rows of its last dim, in f32; row r of a row
// operand or result begins at r * width. Buffers of operands may be read in whole vectors only as
// far as their elements reach.
struct RowTile {
  int64_t first = 0, rows = 0;  // of the rows of the space
  int64_t width = 0;            // elements of a row
  // One per operand: f32 rows, numbers or vector; for role m the tensor itself.
  const void* const* in = nullptr;
  // One per result. A row result may be the buffer of a row operand.
  float* const* out = nullptr;
  const void* state = nullptr;  // RowPlan::state
};

// One node on row tiles. The bits of its results are those of the op's own kernels.
struct RowPlan {
  // One letter per operand, "->", one per result; empty: this node does not run on row tiles.
  //   r  rows: a tensor with all dims of the space
  //   n  one number per row: the dims of the space without the last
  //   v  a vector over the last dim, the same for every row
  //   m  (operands) a contiguous tensor of any type, read where it lies
  //   s  (results) f32 over the last dim: every tile adds its rows, in order
  // Every plan has an r among its operands.
  std::string_view roles;
  std::shared_ptr<const void> state;  // what run() gets: sizes, attributes
  // Results are f32 values that the caller rounds to their type.
  void (*run)(const RowTile&) = nullptr;
};

}  // namespace rhea::ir
