#include "rhea/ops/optimizer/kernels.h"

#include "rhea/ops/simd.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

// Element types by number: 0 f32, 1 bf16, 2 f16. Vectors of 16 lanes, the last one partial.
template <int T>
RHEA_INLINE f32x16 get(const void* data, int64_t i, int64_t n) {
  if constexpr (T == 0) {
    const float* p = static_cast<const float*>(data) + i;
    return n >= kLanes ? load(p) : load_n(p, n);
  } else {
    const uint16_t* p = static_cast<const uint16_t*>(data) + i;
    const u16x16 bits = n >= kLanes ? load_u16(p) : load_u16_n(p, n);
    return T == 1 ? bf16_to_f32(bits) : f16_to_f32(bits);
  }
}
template <int T>
RHEA_INLINE void put(void* data, int64_t i, int64_t n, f32x16 value) {
  if constexpr (T == 0) {
    float* p = static_cast<float*>(data) + i;
    n >= kLanes ? store(p, value) : store_n(p, value, n);
  } else {
    uint16_t* p = static_cast<uint16_t*>(data) + i;
    const u16x16 bits = f32_to_bf16(value);
    n >= kLanes ? store_u16(p, bits) : store_u16_n(p, bits, n);
  }
}

template <int T>
double sum_squares(const void* data, int64_t begin, int64_t count) {
  f64x8 low = {}, high = {};
  for (int64_t i = 0; i < count; i += kLanes) {
    const f32x16 x = get<T>(data, begin + i, count - i);
    const f64x8 a = low_as_f64(x), b = high_as_f64(x);
    low += a * a;
    high += b * b;
  }
  return sum_lanes(low + high);
}

double sum_squares_f64(const void* data, int64_t begin, int64_t count) {
  const double* x = static_cast<const double*>(data) + begin;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += x[i] * x[i];
  return sum;
}

template <int P, int G, int M>
void adam(const ops::AdamPointers& at, int64_t begin, int64_t count, const ops::AdamScalars& s) {
  for (int64_t i = begin; i < begin + count; i += kLanes) {
    const int64_t n = begin + count - i;
    const f32x16 old = get<P>(at.p, i, n);
    f32x16 g = get<G>(at.g, i, n) * s.clip;
    // Not a product with 0: a NaN of the parameter must not reach the moments of AdamW.
    if (s.coupled_decay != 0) g = g + old * s.coupled_decay;
    f32x16 m = get<M>(at.m, i, n), v = get<M>(at.v, i, n);
    m = m + (g - m) * s.one_minus_beta1;
    v = v * s.beta2 + g * g * s.one_minus_beta2;
    put<M>(at.new_m, i, n, m);
    put<M>(at.new_v, i, n, v);
    const f32x16 step = m / (sqrt(v) * s.inv_sqrt_correction2 + s.eps);
    put<P>(at.new_p, i, n, old * s.keep - step * s.step_size);
  }
}

template <int P, int G, int B>
void sgd(const ops::SgdPointers& at, int64_t begin, int64_t count, const ops::SgdScalars& s) {
  for (int64_t i = begin; i < begin + count; i += kLanes) {
    const int64_t n = begin + count - i;
    const f32x16 old = get<P>(at.p, i, n);
    f32x16 g = get<G>(at.g, i, n) * s.clip;
    if (s.weight_decay != 0) g = g + old * s.weight_decay;
    f32x16 direction = g;
    if (s.has_buffer) {
      // At the first step momentum is 0 here, whatever the buffer holds: not multiplied, so that
      // garbage or NaN stays out.
      const f32x16 kept = s.momentum == 0 ? f32x16{} : get<B>(at.buf, i, n) * s.momentum;
      const f32x16 buffer = kept + g * s.gain;
      put<B>(at.new_buf, i, n, buffer);
      direction = s.nesterov ? g + buffer * s.nesterov_momentum : buffer;
    }
    put<P>(at.new_p, i, n, old - direction * s.lr);
  }
}

void round_bf16(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) put<1>(to, i, count - i, get<0>(from, i, count - i));
}

void stream(const void* from, void* to, int64_t bytes) {
#if RHEA_ISA >= 2
  if (reinterpret_cast<uintptr_t>(to) % 64 == 0 && bytes % 64 == 0) {
    const char* source = static_cast<const char*>(from);
    char* target = static_cast<char*>(to);
    for (int64_t i = 0; i < bytes; i += 64)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(target + i), _mm512_loadu_si512(source + i));
    return _mm_sfence();
  }
#endif
  __builtin_memcpy(to, from, static_cast<uint64_t>(bytes));
}

}  // namespace

extern const ops::OptimizerKernels kOptimizerKernels;
constexpr ops::OptimizerKernels kOptimizerKernels = {
    {sum_squares<0>, sum_squares<1>, sum_squares<2>, sum_squares_f64},
    {{{adam<0, 0, 0>, adam<0, 0, 1>}, {adam<0, 1, 0>, adam<0, 1, 1>}},
     {{adam<1, 0, 0>, adam<1, 0, 1>}, {adam<1, 1, 0>, adam<1, 1, 1>}}},
    {{{sgd<0, 0, 0>, sgd<0, 0, 1>}, {sgd<0, 1, 0>, sgd<0, 1, 1>}},
     {{sgd<1, 0, 0>, sgd<1, 0, 1>}, {sgd<1, 1, 0>, sgd<1, 1, 1>}}},
    round_bf16,
    stream};

}  // namespace rhea::RHEA_ISA_NAMESPACE
