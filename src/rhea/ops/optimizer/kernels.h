// Loops of the optimizer rows, one copy per instruction set (kernels.cpp is compiled once for
// each).
#pragma once
#include <cstdint>

#include "rhea/base/cpu_features.h"
#include "rhea/base/dtype.h"

namespace rhea::ops {

// Sum of the squares of data[begin, begin + count), in f64 and in an order that depends on count
// alone.
using SumSquaresFn = double (*)(const void* data, int64_t begin, int64_t count);

// One AdamW or Adam update, per element:
//   g = g * clip                      (+ coupled_decay * p)
//   m = m + one_minus_beta1 * (g - m)
//   v = v * beta2 + one_minus_beta2 * g * g
//   p = p * keep - step_size * m / (sqrt(v) * inv_sqrt_correction2 + eps)
struct AdamScalars {
  float clip, coupled_decay, one_minus_beta1, beta2, one_minus_beta2, keep, step_size,
      inv_sqrt_correction2, eps;
};
struct AdamPointers {
  const void *p, *g, *m, *v;
  void *new_p, *new_m, *new_v;
};
using AdamFn = void (*)(const AdamPointers& at, int64_t begin, int64_t count, const AdamScalars& s);

// One SGD update, per element:
//   g = g * clip + weight_decay * p
//   buf = momentum * buf + gain * g          (momentum 0, gain 1 at the first step)
//   p = p - lr * (nesterov ? g + nesterov_momentum * buf : buf)
// Without a buffer the direction is g.
struct SgdScalars {
  float clip, lr, momentum, nesterov_momentum, gain, weight_decay;
  bool nesterov, has_buffer;
};
struct SgdPointers {
  const void *p, *g, *buf;
  void *new_p, *new_buf;
};
using SgdFn = void (*)(const SgdPointers& at, int64_t begin, int64_t count, const SgdScalars& s);

// count values rounded to bf16.
using RoundFn = void (*)(const float* from, uint16_t* to, int64_t count);

// Copies bytes past the caches where both ends allow it: nobody reads the copy soon.
using StreamFn = void (*)(const void* from, void* to, int64_t bytes);

struct OptimizerKernels {
  SumSquaresFn sum_squares[4];  // by dtype: f32, bf16, f16, f64
  AdamFn adam[2][2][2];         // [parameter][gradient][moments], each 0 f32 or 1 bf16
  SgdFn sgd[2][2][2];           // [parameter][gradient][buffer]
  RoundFn round_bf16;
  StreamFn stream;
};
const OptimizerKernels& optimizer_kernels(Isa isa);

inline int optimizer_dtype(DType dtype) { return dtype == DType::bf16 ? 1 : 0; }

}  // namespace rhea::ops
