// Philox4x32-10 on 16 counters at a time and Box-Muller on its words.
#include "rhea/nn/init_kernel.h"

#include "rhea/ops/simd_math.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

// Product of the lower halves of the 64-bit lanes with b.
RHEA_INLINE u64x8 multiply(u64x8 a, uint32_t b) {
#if RHEA_ISA >= 2
  return bits_as<u64x8>(
      _mm512_mul_epu32(bits_as<__m512i>(a), _mm512_set1_epi32(static_cast<int>(b))));
#elif RHEA_ISA == 1
  struct Halves {
    __m256i low, high;
  };
  const Halves x = bits_as<Halves>(a);
  const __m256i y = _mm256_set1_epi32(static_cast<int>(b));
  return bits_as<u64x8>(Halves{_mm256_mul_epu32(x.low, y), _mm256_mul_epu32(x.high, y)});
#else
  return (a & 0xffffffffu) * b;
#endif
}

RHEA_INLINE bool any(i32x16 mask) {
#if RHEA_ISA >= 2
  const __m512i bits = bits_as<__m512i>(mask);
  return _mm512_test_epi32_mask(bits, bits) != 0;
#else
  const u64x8 u = bits_as<u64x8>(mask);
  return (u[0] | u[1] | u[2] | u[3] | u[4] | u[5] | u[6] | u[7]) != 0;
#endif
}

// Blocks of 64 elements that are drawn side by side: the steps of one wait for each other.
constexpr int kBlocks = 2;
constexpr int kCounters = 2 * kBlocks;  // vectors of eight counters, even and odd ones of a block
constexpr int kVectors = 4 * kBlocks;

// Words of eight counters; what the upper halves of the lanes hold does not matter.
struct Words {
  u64x8 x[4];
};

RHEA_INLINE void philox(uint64_t key, Words (&w)[kCounters]) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 8
    for (int i = 0; i < kCounters; ++i) {
      const u64x8 p0 = multiply(w[i].x[0], 0xD2511F53u), p1 = multiply(w[i].x[2], 0xCD9E8D57u);
      w[i] = {{(p1 >> 32) ^ w[i].x[1] ^ k0, p1, (p0 >> 32) ^ w[i].x[3] ^ k1, p0}};
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

// Two independent standard normal values from two words.
RHEA_INLINE void box_muller(u32x16 a, u32x16 b, f32x16& first, f32x16& second) {
  // In (0, 1]: 31 bits, because the conversion of signed integers is the same on every CPU.
  const f32x16 uniform =
      (__builtin_convertvector(bits_as<i32x16>(a >> 1), f32x16) + 0.5f) * 0x1p-31f;
  const f32x16 radius = sqrt(log(uniform) * -2.0f);
  // The angle is b / 2^32 turns: the nearest quarter, and what is left as t eighths of a turn,
  // -1 <= t < 1. sin and cos of t * pi/4 by minimax fits, 1e-7.
  const u32x16 quarter = (b + 0x20000000u) >> 30;
  const f32x16 t = __builtin_convertvector(bits_as<i32x16>(b - (quarter << 30)), f32x16) * 0x1p-29f;
  const f32x16 u = t * t;
  f32x16 s = fma(splat(-3.595045225e-5f), u, 2.490001024e-3f);
  s = fma(s, u, -8.074543253e-2f);
  s = fma(s, u, 7.853981609e-1f) * t;
  f32x16 c = fma(splat(-3.19160162e-4f), u, 1.585039762e-2f);
  c = fma(c, u, -3.084244885e-1f);
  c = fma(c, u, 1.0f);
  const i32x16 odd = bits_as<i32x16>((quarter & 1u) != 0u);
  const u32x16 negative_cos = ((quarter + 1u) & 2u) << 30, negative_sin = (quarter & 2u) << 30;
  first = radius * bits_as<f32x16>(bits_as<u32x16>(select(odd, s, c)) ^ negative_cos);
  second = radius * bits_as<f32x16>(bits_as<u32x16>(select(odd, c, s)) ^ negative_sin);
}

// Standard normal values of the elements from 64 * block on. Not inlined: without vector
// instructions it is thousands of scalar ones, which compile in seconds once and in minutes for
// every place that draws.
__attribute__((noinline)) void normals(uint64_t key, int64_t block, uint64_t attempt,
                                       f32x16 (&z)[kVectors]) {
  Words w[kCounters];
#pragma GCC unroll 8
  for (int i = 0; i < kCounters; ++i) {
    const uint64_t first = (static_cast<uint64_t>(block) + static_cast<uint64_t>(i / 2)) * 16 +
                           static_cast<uint64_t>(i % 2);
    const u64x8 counter = u64x8{0, 2, 4, 6, 8, 10, 12, 14} + first;
    w[i] = {{counter, counter >> 32, u64x8{} + attempt, u64x8{} + (attempt >> 32)}};
  }
  philox(key, w);
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; i += 2) {
    const Words &even = w[i / 4 * 2], &odd = w[i / 4 * 2 + 1];
    u32x16 word[2];
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j)
      word[j] = bits_as<u32x16>((even.x[i % 4 + j] & 0xffffffffu) | (odd.x[i % 4 + j] << 32));
    box_muller(word[0], word[1], z[i], z[i + 1]);
  }
}

// The first n values (all from 16 on) as dtype 0 f32, 1 bf16, 2 f16 or 3 f64, at element i of data.
RHEA_INLINE void put(int dtype, void* data, int64_t i, f32x16 v, int64_t n) {
  if (dtype == 0) return store_n(static_cast<float*>(data) + i, v, n);
  if (dtype == 1) return store_bf16_n(static_cast<uint16_t*>(data) + i, v, n);
  if (dtype == 2) return store_f16_n(static_cast<uint16_t*>(data) + i, v, n);
  const f64x8 wide[2] = {low_as_f64(v), high_as_f64(v)};
  __builtin_memcpy(static_cast<double*>(data) + i, wide,
                   static_cast<uint64_t>(n < kLanes ? n : kLanes) * 8);
}

}  // namespace

void draw_normal(const nn::NormalDraw& d, void* data, int64_t begin, int64_t end) {
  const bool cuts = d.cut < __builtin_inff();
  for (int64_t i = begin; i < end; i += kBlocks * nn::kDrawnTogether) {
    const int64_t block = i / nn::kDrawnTogether;
    f32x16 value[kVectors];
    normals(d.key, block, 0, value);
    i32x16 outside[kVectors], some = {};
    for (int j = 0; j < kVectors; ++j) {
      value[j] *= d.std;
      outside[j] = abs(value[j]) > d.cut;
      some |= outside[j];
    }
    for (uint64_t attempt = 1; cuts && any(some); ++attempt) {
      f32x16 again[kVectors];
      normals(d.key, block, attempt, again);
      some = i32x16{};
      for (int j = 0; j < kVectors; ++j) {
        value[j] = select(outside[j], again[j] * d.std, value[j]);
        outside[j] = abs(value[j]) > d.cut;
        some |= outside[j];
      }
    }
    for (int64_t j = 0; j < kVectors && i + j * kLanes < end; ++j)
      put(d.dtype, data, i + j * kLanes, value[j], end - i - j * kLanes);
  }
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
