// oneDNN's matrix product for one thread. The only source of the library that includes oneDNN is
// onednn.cpp.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "rhea/base/dtype.h"

namespace rhea::ops {

// C[m,n] = A[m,k] B[k,n]; element (r,c) of a matrix lies at r * row + c * column.
struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_column = 1;
  int64_t b_row = 0, b_column = 1;
  int64_t c_row = 0;
  DType in = DType::f32, out = DType::f32;
};

// A product for use from several threads of our pool at once. What oneDNN compiles is made at the
// first run() and shared.
class OnednnMatmul {
 public:
  explicit OnednnMatmul(const MatmulShape& shape);
  ~OnednnMatmul();

  int64_t scratch_bytes() const;
  // `scratch` belongs to the calling thread.
  void run(const void* a, const void* b, void* c, void* scratch) const;
  // oneDNN's name of the implementation, e.g. "brg:avx512_core_bf16".
  std::string implementation() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhea::ops
