#include "rhea/nn/stored_block.h"

#include <fmt/ranges.h>

#include <cstring>

#include "rhea/base/error.h"

namespace rhea::nn {
namespace {

// Calls copy(element in the stock tensor, element in the parameter) for every element.
template <class F>
void for_each_element(const StoredBlock& block, const ir::Shape& stock_shape, size_t dim,
                      int64_t stock, int64_t stored, const F& copy) {
  if (dim == stock_shape.size()) return copy(stock, stored);
  int64_t row = 1;
  for (size_t d = dim + 1; d < stock_shape.size(); ++d) row *= stock_shape[d];
  const int64_t first = dim == 0 ? block.first_row : 0;
  const int64_t count = dim == 0 ? block.rows : stock_shape[dim];
  for (int64_t i = 0; i < count; ++i)
    for_each_element(block, stock_shape, dim + 1, stock + (first + i) * row,
                     stored + i * block.strides[dim], copy);
}

}  // namespace

StoredBlock stored_in(const ir::Shape& stored, const ir::Shape& begin, const ir::Shape& stock_shape,
                      const std::vector<int64_t>& dims, int64_t first_row, int64_t rows) {
  const size_t rank = stock_shape.size();
  const auto fail = [&](const char* what) {
    throw Error("stored_in: stock {} as dims [{}] at {} of {}: {}", ir::to_string(stock_shape),
                fmt::join(dims, ", "), ir::to_string(begin), ir::to_string(stored), what);
  };
  if (rank == 0 || stored.size() < rank || begin.size() != stored.size() ||
      (!dims.empty() && dims.size() != rank))
    fail("the ranks do not fit");
  if (rows == 0) rows = stock_shape[0] - first_row;
  if (first_row < 0 || rows <= 0 || first_row + rows > stock_shape[0]) fail("no such rows");
  StoredBlock block{.strides = ir::Shape(rank, 0), .rows = rows, .first_row = first_row};
  const size_t outer = stored.size() - rank;
  int64_t stride = 1;
  for (size_t d = stored.size(); d-- > 0;) {
    int64_t length = 1;
    if (d >= outer) {
      const size_t stock_dim = dims.empty() ? d - outer : static_cast<size_t>(dims[d - outer]);
      if (stock_dim >= rank || block.strides[stock_dim] != 0) fail("the dims are no permutation");
      length = stock_dim == 0 ? rows : stock_shape[stock_dim];
      block.strides[stock_dim] = stride;
    }
    if (begin[d] < 0 || begin[d] + length > stored[d]) fail("it lies outside");
    block.offset += begin[d] * stride;
    stride *= stored[d];
  }
  return block;
}

void gather(const StoredBlock& block, const ir::Shape& stock_shape, int64_t item_bytes,
            const void* stored, void* stock) {
  for_each_element(block, stock_shape, 0, 0, block.offset, [&](int64_t to, int64_t from) {
    std::memcpy(static_cast<char*>(stock) + to * item_bytes,
                static_cast<const char*>(stored) + from * item_bytes,
                static_cast<size_t>(item_bytes));
  });
}

void scatter(const StoredBlock& block, const ir::Shape& stock_shape, int64_t item_bytes,
             const void* stock, void* stored) {
  for_each_element(block, stock_shape, 0, 0, block.offset, [&](int64_t from, int64_t to) {
    std::memcpy(static_cast<char*>(stored) + to * item_bytes,
                static_cast<const char*>(stock) + from * item_bytes,
                static_cast<size_t>(item_bytes));
  });
}

}  // namespace rhea::nn
