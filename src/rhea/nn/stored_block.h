// Stock tensors that a module stores in another order: merged, split, transposed. Checkpoints and
// published files keep the stock layout.
#pragma once
#include <cstdint>
#include <vector>

#include "rhea/ir/type.h"

namespace rhea::nn {

// Where a stock tensor, or some of its rows, lies in the parameter that stores it: element
// (i, j, ...) of the block at offset + i strides[0] + j strides[1] + ... of the parameter.
struct StoredBlock {
  ir::Shape strides;      // in elements, one per dim of the stock tensor
  int64_t offset = 0;     // of its first element
  int64_t rows = 0;       // of the stock tensor's dim 0, from first_row on
  int64_t first_row = 0;  // above 0 where the stock tensor is split over several parameters
};

// The block of a parameter of shape `stored` that begins at `begin` and has the stock tensor's dims
// in the order `dims` (empty: as they are): its dim d is dim dims[d] of the stock tensor. Where
// `stored` has more dims, the block takes one place in the outer ones. Merging, along any dim, is
// one block for each stock tensor; transposing is dims {1, 0}. `first_row` and
// `rows` (0: all others) choose rows of the stock tensor, where several parameters split it. Throws
// Error for a block outside the parameter.
StoredBlock stored_in(const ir::Shape& stored, const ir::Shape& begin, const ir::Shape& stock_shape,
                      const std::vector<int64_t>& dims = {}, int64_t first_row = 0,
                      int64_t rows = 0);

// Copies the block between the parameter `stored` and the whole stock tensor `stock`, elements of
// `item_bytes` bytes.
void gather(const StoredBlock& block, const ir::Shape& stock_shape, int64_t item_bytes,
            const void* stored, void* stock);
void scatter(const StoredBlock& block, const ir::Shape& stock_shape, int64_t item_bytes,
             const void* stock, void* stored);

}  // namespace rhea::nn
