// Moving and rounding tiles, once per instruction set.
#include <stdint.h>

#include "rhea/base/dtype.h"
#include "rhea/ops/simd.h"

namespace rhea::RHEA_ISA_NAMESPACE {

void cluster_load(DType dtype, const void* from, float* tile, int64_t n, const void* next) {
  if (dtype == DType::bf16) {
    const auto* x = static_cast<const uint16_t*>(from);
    const auto* soon = static_cast<const uint16_t*>(next);
    int64_t i = 0;
    // A tile is too short for the hardware to see the next one coming.
    for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
      __builtin_prefetch(soon + i);
      store(tile + i, load_bf16(x + i));
      store(tile + i + kLanes, load_bf16(x + i + kLanes));
    }
    for (; i + kLanes <= n; i += kLanes) store(tile + i, load_bf16(x + i));
    if (i < n) store_n(tile + i, load_bf16_n(x + i, n - i), n - i);
  } else if (dtype == DType::f16) {
    const auto* x = static_cast<const uint16_t*>(from);
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(tile + i, load_f16(x + i));
    if (i < n) store_n(tile + i, load_f16_n(x + i, n - i), n - i);
  } else if (dtype == DType::boolean) {
    const auto* x = static_cast<const uint8_t*>(from);
    for (int64_t i = 0; i < n; ++i) tile[i] = x[i] != 0 ? 1.0F : 0.0F;
  } else {
    __builtin_memcpy(tile, from, static_cast<uint64_t>(n) * 4);
  }
}

void cluster_store(DType dtype, const float* tile, void* to, int64_t n) {
  if (dtype == DType::bf16) {
    auto* y = static_cast<uint16_t*>(to);
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store_bf16(y + i, load(tile + i));
    if (i < n) store_bf16_n(y + i, load_n(tile + i, n - i), n - i);
  } else if (dtype == DType::f16) {
    auto* y = static_cast<uint16_t*>(to);
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store_f16(y + i, load(tile + i));
    if (i < n) store_f16_n(y + i, load_n(tile + i, n - i), n - i);
  } else if (dtype == DType::boolean) {
    auto* y = static_cast<uint8_t*>(to);
    for (int64_t i = 0; i < n; ++i) y[i] = tile[i] != 0.0F;
  } else {
    __builtin_memcpy(to, tile, static_cast<uint64_t>(n) * 4);
  }
}

void cluster_round_and_store(DType dtype, float* tile, void* to, int64_t n) {
  if (dtype == DType::bf16) {
    auto* y = static_cast<uint16_t*>(to);
    for (int64_t i = 0; i < n; i += kLanes) {
      const u16x16 bits = f32_to_bf16(load_n(tile + i, n - i));
      store_u16_n(y + i, bits, n - i);
      store_n(tile + i, bf16_to_f32(bits), n - i);
    }
  } else if (dtype == DType::f16) {
    auto* y = static_cast<uint16_t*>(to);
    for (int64_t i = 0; i < n; i += kLanes) {
      const u16x16 bits = f32_to_f16(load_n(tile + i, n - i));
      store_u16_n(y + i, bits, n - i);
      store_n(tile + i, f16_to_f32(bits), n - i);
    }
  } else {
    cluster_store(dtype, tile, to, n);
  }
}

void cluster_round(DType dtype, float* tile, int64_t n) {
  if (dtype == DType::bf16) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(tile + i, round_bf16(load(tile + i)));
    if (i < n) store_n(tile + i, round_bf16(load_n(tile + i, n - i)), n - i);
  } else if (dtype == DType::f16) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(tile + i, round_f16(load(tile + i)));
    if (i < n) store_n(tile + i, round_f16(load_n(tile + i, n - i)), n - i);
  }
}

void cluster_fill(float* tile, float value, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(tile + i, splat(value));
  if (i < n) store_n(tile + i, splat(value), n - i);
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
