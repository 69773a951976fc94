// Tensor types: element type, static shape, memory layout.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhea/base/dtype.h"

namespace rhea::ir {

// Sizes of the dims, outermost first; empty: a scalar.
using Shape = std::vector<int64_t>;

// How the elements of a tensor lie in memory. The shape of a Type is always the logical one.
//  row_major    last dim fastest, no gaps
//  panels_nk    right operand W[N,K] of y = x W^T, packed for the product: panels of 64 rows of W
//  (columns of W^T) panels_kn    right operand W[K,N] of y = x W, packed: panels of 64 columns of W
// A panel of f32 is [K][64]; of bf16 [K/2][64][2] (two neighbours of the reduction share a 32-bit
// word). The free dim is padded to 64 and the reduced one to 16 (f32) or 32 (bf16) with zeros, so
// the bytes do not depend on the rows of x.
enum class Layout : uint8_t { row_major, panels_nk, panels_kn };

// The type of a value.
struct Type {
  DType dtype = DType::f32;           // of the elements
  Shape shape;                        // the logical one
  Layout layout = Layout::row_major;  // how they lie in memory

  // Number of dims.
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  bool operator==(const Type&) const = default;
};

// Product of the dims; 1 for a scalar.
int64_t num_elements(const Shape& shape);
// Bytes of the tensor in its layout, padding of packed layouts included.
int64_t byte_size(const Type& type);
// "f32[2,3]", "bf16[768,512]{panels_nk}", "i32[]".
std::string to_string(const Type& type);
std::string to_string(const Shape& shape);

}  // namespace rhea::ir
