// Tile functions of the elementwise rows and the loop that runs them over tensors, declared for
// each instruction set they are compiled for.
#pragma once
#include <array>

#include "rhea/ir/cpu_kernel.h"
#include "rhea/ir/op_def.h"

// clang-format off: one name a line
#define RHEA_ELEMENTWISE_TILES(X) \
  X(add)                          \
  X(subtract)                     \
  X(multiply)                     \
  X(divide)                       \
  X(maximum)                      \
  X(minimum)                      \
  X(power)                        \
  X(negate)                       \
  X(exponential)                  \
  X(log)                          \
  X(sqrt)                         \
  X(rsqrt)                        \
  X(tanh)                         \
  X(logistic)                     \
  X(abs)                          \
  X(sign)                         \
  X(sine)                         \
  X(cosine)                       \
  X(erf)                          \
  X(compare)                      \
  X(select)                       \
  X(identity)                     \
  X(silu)                         \
  X(gelu)                         \
  X(round_float8)
// clang-format on

#define RHEA_DECLARE_TILE(name) \
  void tile_##name(int64_t n, const float* const* in, float* out, const ir::Attrs& attrs);
#define RHEA_DECLARE_TILES(isa)                     \
  namespace rhea::isa {                             \
  RHEA_ELEMENTWISE_TILES(RHEA_DECLARE_TILE)         \
  void run_elementwise(const ir::KernelArgs& args); \
  }
RHEA_DECLARE_TILES(isa_plain)
#if defined(__x86_64__)
RHEA_DECLARE_TILES(isa_avx2)
RHEA_DECLARE_TILES(isa_avx512)
// The `tile` cell of a row: index Isa.
#define RHEA_TILE_CELL(name)                                                                  \
  {                                                                                           \
    rhea::isa_plain::tile_##name, rhea::isa_avx2::tile_##name, rhea::isa_avx512::tile_##name, \
        nullptr                                                                               \
  }
#else
#define RHEA_TILE_CELL(name) \
  { rhea::isa_plain::tile_##name, nullptr, nullptr, nullptr }
#endif

namespace rhea::ops {

// What run_elementwise needs: a tile function with the formats of its operands.
struct ElementwiseState {
  static constexpr int kMaxOperands = 3;
  static constexpr int64_t kBlock = 16384;  // elements of one item of the grid

  ir::TileFn tile = nullptr;
  ir::Attrs attrs;
  int num_operands = 0;
  DType in[kMaxOperands] = {};
  DType out = DType::f32;
  int64_t count = 0;  // elements
  int64_t row = 1;    // elements of one row (dim 0)
};

// Comparison directions as small integers, in the order EQ NE LT LE GT GE.
int compare_direction(const ir::Attrs& attrs);

}  // namespace rhea::ops
