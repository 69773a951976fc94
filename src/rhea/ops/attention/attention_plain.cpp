// Attention in plain C++ for every floating point type, any width and every option; the last entry
// of the kernel lists. Scores of one query at a time, 64 keys at a time, counted from the first key
// that the query sees: so the arithmetic of a document does not depend on where it lies.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rhea/ops/attention/attention_kernels.h"
#include "rhea/ops/attention/attention_state.h"

namespace rhea::ops {
namespace {

using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;

constexpr int64_t kQueries = 64;  // of one item of the forward grid
constexpr int64_t kKeys = 64;     // scores kept at a time

// One head of an operand: element (token, i).
template <class T>
struct Head {
  T* data;
  int64_t stride;
  Head(const ir::Buffer& buffer, int64_t first_token, int64_t head, int64_t width)
      : data(buffer.as<T>() + first_token * buffer.row_stride + head * width),
        stride(buffer.row_stride) {}
  T* operator[](int64_t token) const { return data + token * stride; }
};

template <class T, class U>
Accum<T> dot(const T* a, const U* b, int64_t n) {
  Accum<T> sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<Accum<T>>(a[i]) * static_cast<Accum<T>>(b[i]);
  return sum;
}

template <class A>
A score(const AttentionShape& s, A qk) {
  const A u = qk * static_cast<A>(s.scale), cap = static_cast<A>(s.softcap);
  return cap > 0 ? cap * std::tanh(u / cap) : u;
}

// What a key's score gets for its distance from the query; both are tokens of the row.
struct PositionBias {
  const float* table;  // of the head, null: none
  const int32_t* positions;
  template <class A>
  A at(int64_t query, int64_t key) const {
    if (table == nullptr) return 0;
    return static_cast<A>(table[positions[key]]) - static_cast<A>(table[positions[query]]);
  }
};

template <class T>
void run_forward(const KernelArgs& args) {
  using A = Accum<T>;
  const auto& state = *static_cast<const AttentionState*>(args.state);
  const AttentionShape& s = state.shape;
  const int64_t blocks = div_up(s.row, kQueries);
  A* acc = static_cast<A*>(args.scratch);
  auto* first = reinterpret_cast<int32_t*>(acc + round_up(s.value_width, 16));
  for (int64_t item = args.begin; item < args.end; ++item) {
    const int64_t row = item / (s.query_heads * blocks), n = item / blocks % s.query_heads;
    const int64_t base = row * s.row, kv = n / s.group;
    first_visible_keys(s, args.in[3].as<const int32_t>() + base, first);
    const Head<const T> q(args.in[0], base, n, s.width), k(args.in[1], base, kv, s.width);
    const Head<const T> v(args.in[2], base, kv, s.value_width);
    const Head<T> o(args.out[0], base, n, s.value_width);
    const PositionBias bias{state.bias(args, n), args.in[3].as<const int32_t>() + base};
    const int64_t t0 = item % blocks * kQueries, t1 = std::min(t0 + kQueries, s.row);
    for (int64_t t = t0; t < t1; ++t) {
      std::fill_n(acc, s.value_width, A{0});
      A top = -std::numeric_limits<A>::infinity(), sum = 0;
      if (s.has_sink) {
        top = state.sink<A>(args, n);
        sum = 1;
      }
      for (int64_t k0 = first[t]; k0 <= t; k0 += kKeys) {
        const int64_t count = std::min(kKeys, t + 1 - k0);
        A u[kKeys], block_top = top;
        for (int64_t j = 0; j < count; ++j) {
          u[j] = score(s, dot(q[t], k[k0 + j], s.width)) + bias.at<A>(t, k0 + j);
          block_top = u[j] > block_top || u[j] != u[j] ? u[j] : block_top;
        }
        const A shrink = std::exp(top - block_top);  // 0 at the first block
        top = block_top;
        sum *= shrink;
        for (int64_t i = 0; i < s.value_width; ++i) acc[i] *= shrink;
        for (int64_t j = 0; j < count; ++j) {
          const A p = std::exp(u[j] - top);
          sum += p;
          const T* row_v = v[k0 + j];
          for (int64_t i = 0; i < s.value_width; ++i) acc[i] += p * static_cast<A>(row_v[i]);
        }
      }
      for (int64_t i = 0; i < s.value_width; ++i) o[t][i] = static_cast<T>(acc[i] / sum);
      args.out[1].as<A>()[(base + t) * s.query_heads + n] = top + std::log(sum);
    }
  }
}

// Sums over the queries of one (row, kv head): dk and dv in scratch, written once.
template <class T>
void run_backward_head(const KernelArgs& args, const AttentionState& state, int64_t row,
                       int64_t kv) {
  using A = Accum<T>;
  const AttentionShape& s = state.shape;
  const int64_t base = row * s.row, width = s.width, value_width = s.value_width;
  A* dk_sum = static_cast<A*>(args.scratch);
  A* dv_sum = dk_sum + s.row * width;
  A* dq_sum = dv_sum + s.row * value_width;
  auto* first = reinterpret_cast<int32_t*>(dq_sum + width);
  std::fill_n(dk_sum, s.row * (width + value_width), A{0});
  first_visible_keys(s, args.in[3].as<const int32_t>() + base, first);
  const Head<const T> k(args.in[1], base, kv, width), v(args.in[2], base, kv, value_width);
  const A scale = static_cast<A>(s.scale), cap = static_cast<A>(s.softcap);
  for (int64_t n = kv * s.group; n < (kv + 1) * s.group; ++n) {
    const Head<const T> q(args.in[0], base, n, width);
    const Head<const T> o(args.in[state.at.o], base, n, value_width);
    const Head<const T> d_o(args.in[state.at.d_o], base, n, value_width);
    const Head<T> dq(args.out[0], base, n, width);
    const PositionBias bias{state.bias(args, n), args.in[3].as<const int32_t>() + base};
    A dsink = 0;
    for (int64_t t = 0; t < s.row; ++t) {
      const int64_t pair = (base + t) * s.query_heads + n;
      const A lse = args.in[state.at.lse].as<const A>()[pair];
      A delta = dot(o[t], d_o[t], value_width);
      if (state.at.d_lse >= 0) delta -= args.in[state.at.d_lse].as<const A>()[pair];
      if (s.has_sink) dsink -= std::exp(state.sink<A>(args, n) - lse) * delta;
      std::fill_n(dq_sum, width, A{0});
      for (int64_t key = first[t]; key <= t; ++key) {
        const A u = score(s, dot(q[t], k[key], width));
        const A p = std::exp(u + bias.at<A>(t, key) - lse);
        const A capped = cap > 0 ? u / cap : A{0};
        const A dp = dot(d_o[t], v[key], value_width);
        const A ds = p * (dp - delta) * (1 - capped * capped) * scale;
        for (int64_t i = 0; i < value_width; ++i)
          dv_sum[key * value_width + i] += p * static_cast<A>(d_o[t][i]);
        for (int64_t i = 0; i < width; ++i) {
          dq_sum[i] += ds * static_cast<A>(k[key][i]);
          dk_sum[key * width + i] += ds * static_cast<A>(q[t][i]);
        }
      }
      for (int64_t i = 0; i < width; ++i) dq[t][i] = static_cast<T>(dq_sum[i]);
    }
    if (s.has_sink) static_cast<A*>(args.workspace)[row * s.query_heads + n] = dsink;
  }
  const Head<T> dk(args.out[1], base, kv, width), dv(args.out[2], base, kv, value_width);
  for (int64_t t = 0; t < s.row; ++t) {
    for (int64_t i = 0; i < width; ++i) dk[t][i] = static_cast<T>(dk_sum[t * width + i]);
    for (int64_t i = 0; i < value_width; ++i)
      dv[t][i] = static_cast<T>(dv_sum[t * value_width + i]);
  }
}

template <class T>
void run_backward(const KernelArgs& args) {
  const auto& state = *static_cast<const AttentionState*>(args.state);
  if (args.phase == 1) return sum_sink_rows<Accum<T>>(args, state.shape);
  for (int64_t item = args.begin; item < args.end; ++item)
    run_backward_head<T>(args, state, item / state.shape.kv_heads, item % state.shape.kv_heads);
}

KernelPlan plan_forward(const OpInstance& op) {
  const AttentionShape s = AttentionShape::of(op);
  KernelPlan plan;
  plan.grid = {s.rows * s.query_heads * div_up(s.row, kQueries)};
  plan.scratch_bytes = round_up(s.value_width, 16) * dtype_size(accum_dtype(s.dtype)) + s.row * 4;
  plan.strided_in = 0b111;
  plan.strided_out = 0b1;
  plan.state = std::make_shared<AttentionState>(op, false);
  dispatch_float(s.dtype, [&]<class T>() { plan.run = run_forward<T>; });
  return plan;
}

KernelPlan plan_backward(const OpInstance& op) {
  const AttentionShape s = AttentionShape::of(op);
  KernelPlan plan;
  plan.grid = {s.rows * s.kv_heads};
  plan_sink_sums(s, plan);
  const int64_t floats = s.row * (s.width + s.value_width) + s.width;
  plan.scratch_bytes = floats * dtype_size(accum_dtype(s.dtype)) + s.row * 4;
  plan.strided_in = plan.strided_out = 0b111;
  plan.state = std::make_shared<AttentionState>(op, true);
  dispatch_float(s.dtype, [&]<class T>() { plan.run = run_backward<T>; });
  return plan;
}

}  // namespace

ir::CpuKernel attention_plain_kernel() { return {.name = "attention.plain", .plan = plan_forward}; }
ir::CpuKernel attention_grad_plain_kernel() {
  return {.name = "attention_grad.plain", .plan = plan_backward};
}

}  // namespace rhea::ops
