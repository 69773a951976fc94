// Chains of multiply-adds in registers and sums of long arrays, one copy per instruction set.
#include <cstring>

#include "rhea/ops/dot_general/micro.h"

namespace rhea::RHEA_ISA_NAMESPACE {

// Enough independent chains to hide the latency of the units, few enough for the registers.
constexpr int kChains = RHEA_ISA >= 2 ? 24 : 12;

// Runs the chains `count` times; returns the floating point operations done.
template <class Words>
static double chains(int64_t count) {
  vec sums[kChains];
#pragma GCC unroll 32
  for (int i = 0; i < kChains; ++i) sums[i] = vec{} + 0.1f;
  const vec a = vec{} + 0.25f, b = vec{} - 0.125f;
  for (int64_t n = 0; n < count; ++n) {
#pragma GCC unroll 32
    for (int i = 0; i < kChains; ++i) {
#if RHEA_ISA == 3
      if constexpr (Words::kPair == 2) {
        sums[i] = bits_as<vec>(
            _mm512_dpbf16_ps(bits_as<__m512>(sums[i]), bits_as<__m512bh>(a), bits_as<__m512bh>(b)));
      } else
#endif
      {
        sums[i] = multiply_add(a, b, sums[i]);
      }
      // Every product is computed, none is folded.
#if RHEA_ISA >= 2
      asm volatile("" : "+v"(sums[i]));
#elif defined(__x86_64__)
      asm volatile("" : "+x"(sums[i]));
#endif
    }
  }
  vec total = {};
#pragma GCC unroll 32
  for (int i = 0; i < kChains; ++i) total = total + sums[i];
  volatile float sink = total[0];
  static_cast<void>(sink);
  const int pair = RHEA_ISA == 3 ? Words::kPair : 1;
  return 2.0 * pair * kVector * kChains * static_cast<double>(count);
}

double peak_chains_f32(int64_t count) { return chains<F32Words>(count); }
double peak_chains_bf16(int64_t count) { return chains<Bf16Words>(count); }

void peak_add(float* to, const float* from, int64_t count) {
  for (int64_t i = 0; i + kVector <= count; i += kVector) {
    vec a, b;
    std::memcpy(&a, to + i, sizeof a);
    std::memcpy(&b, from + i, sizeof b);
    a = a + b;
    std::memcpy(to + i, &a, sizeof a);
  }
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
