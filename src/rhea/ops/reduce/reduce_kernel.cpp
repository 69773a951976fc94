// Sums and maxima of f32, bf16 and f16 in f32, with a tree that depends on the shape alone.
#include "rhea/ops/reduce/reduce_kernel.h"
#include "rhea/ops/simd_math.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

using ops::ReduceState;

RHEA_INLINE f32x16 load_any(const void* data, DType dtype, int64_t at, int64_t n) {
  if (dtype == DType::f32) return load_n(static_cast<const float*>(data) + at, n);
  const auto* half = static_cast<const uint16_t*>(data) + at;
  return dtype == DType::bf16 ? load_bf16_n(half, n) : load_f16_n(half, n);
}

RHEA_INLINE void store_any(void* data, DType dtype, int64_t at, f32x16 v, int64_t n) {
  if (dtype == DType::f32) return store_n(static_cast<float*>(data) + at, v, n);
  auto* half = static_cast<uint16_t*>(data) + at;
  if (dtype == DType::bf16) {
    store_bf16_n(half, v, n);
  } else {
    store_f16_n(half, v, n);
  }
}

template <bool kMax>
RHEA_INLINE f32x16 join(f32x16 a, f32x16 b) {
  if constexpr (kMax) {
    return maximum(a, b);
  } else {
    return a + b;
  }
}
template <bool kMax>
RHEA_INLINE f32x16 identity() {
  return splat(kMax ? -__builtin_inff() : 0.0f);
}

// Lanes from n on become the identity of the reduction.
template <bool kMax>
RHEA_INLINE f32x16 keep_first(f32x16 v, int64_t n) {
  if constexpr (!kMax) return v;  // tail loads give zeros
  return n >= kLanes ? v : select(lane_index() < static_cast<int32_t>(n), v, identity<kMax>());
}

// One run of n neighbours: four accumulators of 16 lanes, joined in a fixed order.
template <bool kMax, DType kType>
RHEA_INLINE float reduce_run(const void* data, int64_t at, int64_t n) {
  f32x16 acc[4] = {identity<kMax>(), identity<kMax>(), identity<kMax>(), identity<kMax>()};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int k = 0; k < 4; ++k)
      acc[k] = join<kMax>(acc[k], load_any(data, kType, at + i + k * kLanes, kLanes));
  }
  for (int k = 0; i < n; i += kLanes, ++k)
    acc[k] = join<kMax>(acc[k], keep_first<kMax>(load_any(data, kType, at + i, n - i), n - i));
  const f32x16 all = join<kMax>(join<kMax>(acc[0], acc[2]), join<kMax>(acc[1], acc[3]));
  return kMax ? max_lanes(all) : sum_lanes(all);
}

// Rows [begin, end) of a block of at most 256 columns; every 32 rows join the sum as one number, so
// that a long column does not lose digits.
template <bool kMax, DType kType>
void reduce_columns(const void* data, int64_t at, int64_t stride, int64_t begin, int64_t end,
                    int64_t columns, float* result) {
  constexpr int64_t kGroup = 32;
  for (int64_t c = 0; c < columns; c += kLanes) {
    const int64_t n = columns - c;
    f32x16 total = identity<kMax>();
    for (int64_t group = begin; group < end; group += kGroup) {
      const int64_t stop = group + kGroup < end ? group + kGroup : end;
      f32x16 part = identity<kMax>();
      for (int64_t r = group; r < stop; ++r)
        part = join<kMax>(part, load_any(data, kType, at + r * stride + c, n));
      total = join<kMax>(total, part);
    }
    store_n(result + c, total, n);
  }
}

template <bool kMax, DType kType>
void reduce_items(const ReduceState& s, const ir::KernelArgs& args) {
  const void* data = args.in[0].data;
  if (args.phase == 1) {  // join the partials of one output
    const auto* partial = static_cast<const float*>(args.workspace);
    const int64_t outputs = s.outer * s.inner;
    for (int64_t i = args.begin * ReduceState::kColumns;
         i < outputs && i < args.end * ReduceState::kColumns; i += kLanes) {
      f32x16 total = identity<kMax>();
      for (int64_t c = 0; c < s.num_chunks; ++c)
        total = join<kMax>(total, load_n(partial + c * outputs + i, outputs - i));
      store_any(args.out[0].data, s.out, i, total, outputs - i);
    }
    return;
  }
  for (int64_t item = args.begin; item < args.end; ++item) {
    const int64_t block = item % s.num_column_blocks;
    const int64_t chunk = item / s.num_column_blocks % s.num_chunks;
    const int64_t outer = item / s.num_column_blocks / s.num_chunks;
    const int64_t column = block * ReduceState::kColumns;
    const int64_t columns =
        s.inner - column < ReduceState::kColumns ? s.inner - column : ReduceState::kColumns;
    const int64_t begin = chunk * s.chunk;
    const int64_t end = begin + s.chunk < s.reduced ? begin + s.chunk : s.reduced;
    alignas(64) float result[ReduceState::kColumns];
    if (s.inner == 1) {
      result[0] = reduce_run<kMax, kType>(data, outer * s.reduced + begin, end - begin);
    } else {
      reduce_columns<kMax, kType>(data, outer * s.reduced * s.inner + column, s.inner, begin, end,
                                  columns, result);
    }
    const int64_t to = outer * s.inner + column;
    for (int64_t i = 0; i < columns; i += kLanes) {
      const f32x16 v = load_n(result + i, columns - i);
      if (s.num_chunks == 1) {
        store_any(args.out[0].data, s.out, to + i, v, columns - i);
      } else {
        float* partial = static_cast<float*>(args.workspace) + chunk * s.outer * s.inner;
        store_n(partial + to + i, v, columns - i);
      }
    }
  }
}

template <bool kMax>
void reduce_typed(const ReduceState& s, const ir::KernelArgs& args) {
  if (s.in == DType::f32) return reduce_items<kMax, DType::f32>(s, args);
  if (s.in == DType::bf16) return reduce_items<kMax, DType::bf16>(s, args);
  return reduce_items<kMax, DType::f16>(s, args);
}

// max and sum of exp(x - max) of one row; a maximum that is not finite counts as 0, as in PyTorch.
struct MaxAndSum {
  float max, sum;
};
RHEA_INLINE MaxAndSum exp_sum(const void* data, DType dtype, int64_t at, int64_t n,
                              bool infinite_max_is_zero) {
  f32x16 m = splat(-__builtin_inff());
  for (int64_t i = 0; i < n; i += kLanes)
    m = maximum(m, keep_first<true>(load_any(data, dtype, at + i, n - i), n - i));
  float max = max_lanes(m);
  if (infinite_max_is_zero && __builtin_isinf(max)) max = 0;
  f32x16 sum = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    const f32x16 e = exp(load_any(data, dtype, at + i, n - i) - max);
    sum += n - i >= kLanes ? e : select(lane_index() < static_cast<int32_t>(n - i), e, f32x16{});
  }
  return {max, sum_lanes(sum)};
}

}  // namespace

void run_reduce(const ir::KernelArgs& args) {
  const auto& s = *static_cast<const ReduceState*>(args.state);
  if (s.max) return reduce_typed<true>(s, args);
  reduce_typed<false>(s, args);
}

// y = exp(x - max) / sum exp(x - max)
void run_softmax(const ir::KernelArgs& args) {
  const auto& s = *static_cast<const ops::RowsState*>(args.state);
  const int64_t stop = args.end * s.rows_per_item;
  for (int64_t row = args.begin * s.rows_per_item; row < s.rows && row < stop; ++row) {
    const int64_t at = row * s.n;
    const MaxAndSum t = exp_sum(args.in[0].data, s.dtype, at, s.n, false);
    for (int64_t i = 0; i < s.n; i += kLanes) {
      const f32x16 e = exp(load_any(args.in[0].data, s.dtype, at + i, s.n - i) - t.max);
      store_any(args.out[0].data, s.dtype, at + i, e / t.sum, s.n - i);
    }
  }
}

// y = max + log(sum exp(x - max))
void run_logsumexp(const ir::KernelArgs& args) {
  const auto& s = *static_cast<const ops::RowsState*>(args.state);
  const int64_t stop = args.end * s.rows_per_item;
  for (int64_t row = args.begin * s.rows_per_item; row < s.rows && row < stop; ++row) {
    const MaxAndSum t = exp_sum(args.in[0].data, s.dtype, row * s.n, s.n, true);
    store_any(args.out[0].data, s.dtype, row, splat(t.max) + log(splat(t.sum)), 1);
  }
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
