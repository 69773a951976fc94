// Unrolled loops over arrays that must live in registers, for kernel files (rules in simd.h).
#pragma once
#include "rhea/ops/simd.h"

#define RHEA_EACH __attribute__((always_inline))

namespace rhea::RHEA_ISA_NAMESPACE {

// f.operator()<0>(), ..., f.operator()<N - 1>(). With constants for indices from the start GCC
// makes registers of an array; one that a loop indexes, unrolled later, is also written to the
// stack before and after each loop: 72 stores and loads a block of 6 x 4 vectors, 2 points of the
// peak at 384 steps.
template <int N, int I = 0, class F>
RHEA_INLINE void each(const F& f) {
  if constexpr (I < N) {
    f.template operator()<I>();
    each<N, I + 1>(f);
  }
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
