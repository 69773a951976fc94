// Tile functions, and the loop over a tensor: load a tile as f32, apply, round, store.
#include "rhea/ops/elementwise/tiles.h"
#include "rhea/ops/float8/round.h"
#include "rhea/ops/simd_math.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

template <class F>
RHEA_INLINE void map1(int64_t n, const float* const* in, float* out, F f) {
  const float* x = in[0];
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, f(load(x + i)));
  if (i < n) store_n(out + i, f(load_n(x + i, n - i)), n - i);
}

template <class F>
RHEA_INLINE void map2(int64_t n, const float* const* in, float* out, F f) {
  const float* x = in[0];
  const float* y = in[1];
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, f(load(x + i), load(y + i)));
  if (i < n) store_n(out + i, f(load_n(x + i, n - i), load_n(y + i, n - i)), n - i);
}

RHEA_INLINE f32x16 flag(i32x16 mask) { return select(mask, splat(1.0f), splat(0.0f)); }

}  // namespace

#define RHEA_TILE1(name, expression)                                                     \
  void tile_##name(int64_t n, const float* const* in, float* out, const ir::Attrs&) {    \
    map1(                                                                                \
        n, in, out, [](f32x16 x) __attribute__((always_inline)) { return expression; }); \
  }
#define RHEA_TILE2(name, expression)                                                               \
  void tile_##name(int64_t n, const float* const* in, float* out, const ir::Attrs&) {              \
    map2(                                                                                          \
        n, in, out, [](f32x16 x, f32x16 y) __attribute__((always_inline)) { return expression; }); \
  }

RHEA_TILE2(add, x + y)
RHEA_TILE2(subtract, x - y)
RHEA_TILE2(multiply, (x * y))
RHEA_TILE2(divide, x / y)
RHEA_TILE2(maximum, maximum(x, y))
RHEA_TILE2(minimum, minimum(x, y))
RHEA_TILE2(power, power(x, y))
RHEA_TILE1(negate, -x)
RHEA_TILE1(exponential, exp(x))
RHEA_TILE1(log, log(x))
RHEA_TILE1(sqrt, sqrt(x))
RHEA_TILE1(rsqrt, rsqrt(x))
RHEA_TILE1(tanh, tanh(x))
RHEA_TILE1(logistic, logistic(x))
RHEA_TILE1(abs, abs(x))
RHEA_TILE1(sign, flag(x > 0.0f) - flag(x < 0.0f))
RHEA_TILE1(sine, sine(x))
RHEA_TILE1(cosine, cosine(x))
RHEA_TILE1(erf, erf(x))
RHEA_TILE1(identity, x)
RHEA_TILE1(silu, (x * logistic(x)))

void tile_compare(int64_t n, const float* const* in, float* out, const ir::Attrs& attrs) {
#define RHEA_COMPARE(op) \
  return map2(           \
      n, in, out, [](f32x16 x, f32x16 y) __attribute__((always_inline)) { return flag(x op y); })
  switch (ops::compare_direction(attrs)) {
    case 0:
      RHEA_COMPARE(==);
    case 1:
      RHEA_COMPARE(!=);
    case 2:
      RHEA_COMPARE(<);
    case 3:
      RHEA_COMPARE(<=);
    case 4:
      RHEA_COMPARE(>);
    default:
      RHEA_COMPARE(>=);
  }
#undef RHEA_COMPARE
}

void tile_select(int64_t n, const float* const* in, float* out, const ir::Attrs&) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const i32x16 mask = load_n(in[0] + i, n - i) != 0.0f;
    store_n(out + i, select(mask, load_n(in[1] + i, n - i), load_n(in[2] + i, n - i)), n - i);
  }
}

// 0.5 x (1 + erf(x / sqrt 2)), or with tanh(sqrt(2 / pi) (x + 0.044715 x^3)) in place of erf.
void tile_gelu(int64_t n, const float* const* in, float* out, const ir::Attrs& attrs) {
  if (attrs.i64("approximate") != 0) {
    return map1(
        n, in, out, [](f32x16 x) __attribute__((always_inline)) {
          const f32x16 inner = 0.7978845608f * fma(x * x * x, 0.044715f, x);
          // 1 + tanh(a) = 2 logistic(2 a), which keeps the digits of the small negative side
          return x * logistic(inner + inner);
        });
  }
  map1(
      n, in, out, [](f32x16 x) __attribute__((always_inline)) {
        return 0.5f * x * (1.0f + erf(x * 0.7071067812f));
      });
}

void tile_round_float8(int64_t n, const float* const* in, float* out, const ir::Attrs& attrs) {
  const ops::Float8Format format = ops::kFloat8Formats[attrs.i64("format")];
  const float* x = in[0];
  for (int64_t i = 0; i < n; ++i) out[i] = ops::round_float8(x[i], format);
}

namespace {

constexpr int64_t kTile = 512;

RHEA_INLINE const float* load_tile(const ir::Buffer& buffer, DType dtype, int64_t at, int64_t n,
                                   float* tile) {
  switch (dtype) {
    case DType::f32:
      return static_cast<const float*>(buffer.data) + at;
    case DType::bf16: {
      const auto* x = static_cast<const uint16_t*>(buffer.data) + at;
      for (int64_t i = 0; i < n; i += kLanes) store(tile + i, load_bf16_n(x + i, n - i));
      return tile;
    }
    case DType::f16: {
      const auto* x = static_cast<const uint16_t*>(buffer.data) + at;
      for (int64_t i = 0; i < n; i += kLanes) store(tile + i, load_f16_n(x + i, n - i));
      return tile;
    }
    default: {  // bool
      const auto* x = static_cast<const uint8_t*>(buffer.data) + at;
      for (int64_t i = 0; i < n; ++i) tile[i] = x[i] != 0 ? 1.0f : 0.0f;
      return tile;
    }
  }
}

RHEA_INLINE void store_tile(const float* tile, const ir::Buffer& buffer, DType dtype, int64_t at,
                            int64_t n) {
  if (dtype == DType::bf16) {
    auto* y = static_cast<uint16_t*>(buffer.data) + at;
    for (int64_t i = 0; i < n; i += kLanes) store_bf16_n(y + i, load_n(tile + i, n - i), n - i);
  } else if (dtype == DType::f16) {
    auto* y = static_cast<uint16_t*>(buffer.data) + at;
    for (int64_t i = 0; i < n; i += kLanes) store_f16_n(y + i, load_n(tile + i, n - i), n - i);
  } else if (dtype == DType::boolean) {
    auto* y = static_cast<uint8_t*>(buffer.data) + at;
    for (int64_t i = 0; i < n; ++i) y[i] = tile[i] != 0.0f;
  }
}

}  // namespace

void run_elementwise(const ir::KernelArgs& args) {
  const auto& s = *static_cast<const ops::ElementwiseState*>(args.state);
  alignas(64) float tiles[ops::ElementwiseState::kMaxOperands + 1][kTile];
  bool contiguous = args.out[0].row_stride == s.row;
  for (int k = 0; k < s.num_operands; ++k) contiguous &= args.in[k].row_stride == s.row;
  const int64_t block_end = args.end * ops::ElementwiseState::kBlock;
  const int64_t end = block_end < s.count ? block_end : s.count;
  int64_t n = 0;
  for (int64_t i = args.begin * ops::ElementwiseState::kBlock; i < end; i += n) {
    n = end - i < kTile ? end - i : kTile;
    int64_t row = 0, column = i;
    if (!contiguous) {  // a tile ends with its row
      row = i / s.row;
      column = i % s.row;
      if (s.row - column < n) n = s.row - column;
    }
    const float* in[ops::ElementwiseState::kMaxOperands] = {};
    for (int k = 0; k < s.num_operands; ++k) {
      const int64_t at = row * args.in[k].row_stride + column;
      in[k] = load_tile(args.in[k], s.in[k], at, n, tiles[k]);
    }
    const int64_t at = row * args.out[0].row_stride + column;
    if (s.out == DType::f32) {
      s.tile(n, in, static_cast<float*>(args.out[0].data) + at, s.attrs);
    } else {
      float* result = tiles[ops::ElementwiseState::kMaxOperands];
      s.tile(n, in, result, s.attrs);
      store_tile(result, args.out[0], s.out, at, n);
    }
  }
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
