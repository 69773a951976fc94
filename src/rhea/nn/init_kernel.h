// The vector loop behind initialise(), one copy per instruction set (init_kernel.cpp is compiled
// once for each).
#pragma once
#include <cstdint>

namespace rhea::nn {

// Elements that share the counters of one draw; the rule that places them is in initialise.h.
inline constexpr int64_t kDrawnTogether = 64;

struct NormalDraw {
  uint64_t key;
  float std;
  float cut;  // values beyond it, on either side, are drawn again; infinity: none are
  int dtype;  // as integer
};

}  // namespace rhea::nn

#define RHEA_DECLARE_DRAW(isa)                                                          \
  namespace rhea::isa {                                                                 \
  /* Elements [begin, end) of the tensor at `data`; begin is a multiple of 64. */       \
  void draw_normal(const nn::NormalDraw& draw, void* data, int64_t begin, int64_t end); \
  }
RHEA_DECLARE_DRAW(isa_plain)
#if defined(__x86_64__)
RHEA_DECLARE_DRAW(isa_avx2)
RHEA_DECLARE_DRAW(isa_avx512)
#endif
#undef RHEA_DECLARE_DRAW
