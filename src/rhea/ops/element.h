// Shared by plain kernels of row-wise ops: the accumulation type of a dtype, dispatch over the
// floating point types, and the rows of a tensor whose dim 0 may be strided.
#pragma once
#include <type_traits>

#include "rhea/base/dtype.h"
#include "rhea/base/error.h"
#include "rhea/ir/type.h"

namespace rhea::ops {

// f64 accumulates in f64, everything else in f32.
template <class T>
using Accum = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The dtype of Accum.
inline DType accum_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// Rounds to T and back: what a value is worth after it was stored.
template <class T>
Accum<T> round_to(Accum<T> value) {
  return static_cast<Accum<T>>(static_cast<T>(value));
}

// Calls f.template operator()<T>() for the floating point types.
template <class F>
decltype(auto) dispatch_float(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::bf16:
      return f.template operator()<bf16>();
    case DType::f16:
      return f.template operator()<f16>();
    default:
      RHEA_CHECK(dtype == DType::f64, "{} is not a floating point type", dtype_name(dtype));
      return f.template operator()<double>();
  }
}

// A tensor [T, .., D] as T tokens of `per_token` rows of `width` elements. Tokens may lie further
// apart than their elements (ir::Buffer::row_stride); a tensor of rank 1 is one row.
struct Rows {
  int64_t tokens = 1;     // size of dim 0
  int64_t per_token = 1;  // product of the dims between
  int64_t width = 1;      // size of the last dim
  // Rows in all.
  int64_t count() const { return tokens * per_token; }
};

// The rows of a tensor of that shape; a scalar is one row of one element.
inline Rows rows_of(const ir::Shape& shape) {
  Rows rows;
  if (shape.empty()) return rows;
  rows.width = shape.back();
  if (shape.size() > 1) rows.tokens = shape.front();
  for (size_t i = 1; i + 1 < shape.size(); ++i) rows.per_token *= shape[i];
  return rows;
}

}  // namespace rhea::ops
