// RMSNorm in plain C++ for every floating point type, and the lists of kernels.
#include <algorithm>
#include <cmath>

#include "rhea/ops/element.h"
#include "rhea/ops/norm/norm_blocks.h"
#include "rhea/ops/norm/norm_kernels.h"
#include "rhea/ops/row_kernels.h"

namespace rhea::ops {
namespace {

using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;

template <class T>
struct RmsRow {
  using A = Accum<T>;
  const T* w;
  int64_t width;
  A eps, offset;

  A inverse_rms(const T* x) const {
    A squares = 0;
    for (int64_t i = 0; i < width; ++i) squares += static_cast<A>(x[i]) * static_cast<A>(x[i]);
    return A{1} / std::sqrt(squares / static_cast<A>(width) + eps);
  }
  A scale(int64_t i) const { return offset + static_cast<A>(w[i]); }

  void forward(const T* x, T* y) const {
    const A r = inverse_rms(x);
    for (int64_t i = 0; i < width; ++i)
      y[i] = static_cast<T>(round_to<T>(static_cast<A>(x[i]) * r) * scale(i));
  }

  // Adds this row's part of the weight gradient to dw.
  void backward(const T* x, const T* dy, T* dx, A* dw) const {
    const A r = inverse_rms(x);
    A dot = 0;
    for (int64_t i = 0; i < width; ++i)
      dot += static_cast<A>(dy[i]) * scale(i) * (static_cast<A>(x[i]) * r);
    dot /= static_cast<A>(width);
    for (int64_t i = 0; i < width; ++i) {
      const A g = static_cast<A>(dy[i]), n = static_cast<A>(x[i]) * r;
      dw[i] += g * round_to<T>(n);
      dx[i] = static_cast<T>(r * (g * scale(i) - n * dot));
    }
  }
};

template <class T>
RmsRow<T> row_of(const KernelArgs& args, const NormState& state) {
  using A = Accum<T>;
  return {args.in[1].as<const T>(), state.rows.width, static_cast<A>(state.eps),
          static_cast<A>(state.offset)};
}

template <class T>
void run_forward(const KernelArgs& args) {
  const auto& state = *static_cast<const NormState*>(args.state);
  const RmsRow<T> row = row_of<T>(args, state);
  for_rows(state, args.begin, args.end, [&](int64_t token, int64_t inner) {
    row.forward(args.in[0].as<const T>() + token * args.in[0].row_stride + inner,
                args.out[0].as<T>() + token * args.out[0].row_stride + inner);
  });
}

template <class T>
void run_backward(const KernelArgs& args) {
  using A = Accum<T>;
  const auto& state = *static_cast<const NormState*>(args.state);
  if (args.phase == 1) return state.sums.join(args, 0, args.out[1].as<A>());
  const RmsRow<T> row = row_of<T>(args, state);
  for (int64_t block = args.begin; block < args.end; ++block) {
    A* dw = state.partial<A>(args, block, 0);
    std::fill_n(dw, state.rows.width, A{0});
    for_rows(state, block, block + 1, [&](int64_t token, int64_t inner) {
      row.backward(args.in[0].as<const T>() + token * args.in[0].row_stride + inner,
                   args.in[2].as<const T>() + token * args.in[2].row_stride + inner,
                   args.out[0].as<T>() + token * args.out[0].row_stride + inner, dw);
    });
  }
}

using RowsKernel = void (*)(const NormRows&);

KernelPlan plan_vectors(const OpInstance& op, Isa isa) {
  constexpr RowsKernel kRows[] = RHEA_PER_ISA_BF16(rms_norm_rows);
  return plan_norm(op, kRows[static_cast<int>(isa)]);
}
KernelPlan plan_grad(const OpInstance& op, RowsKernel rows) {
  return plan_norm_grad(op, {2}, 1, rows);
}
KernelPlan plan_grad_vectors(const OpInstance& op, Isa isa) {
  constexpr RowsKernel kRows[] = RHEA_PER_ISA_BF16(rms_norm_grad_rows);
  return plan_grad(op, kRows[static_cast<int>(isa)]);
}

}  // namespace

ir::RowPlan rms_norm_tile(const OpInstance& op, Isa isa) {
  constexpr RowsKernel kRows[] = RHEA_PER_ISA_BF16(rms_norm_rows);
  return plan_norm_tile(op, "rv->r", false, kRows[vector_isa(isa)]);
}
ir::RowPlan rms_norm_grad_tile(const OpInstance& op, Isa isa) {
  constexpr RowsKernel kRows[] = RHEA_PER_ISA_BF16(rms_norm_grad_rows);
  return plan_norm_tile(op, "rvr->rs", true, kRows[vector_isa(isa)]);
}

std::vector<ir::CpuKernel> rms_norm_kernels() {
  return row_kernels(
      "rms_norm.vectors", plan_vectors, "rms_norm.plain",
      [](const OpInstance& op) { return plan_norm(op); }, []<class T>() { return run_forward<T>; });
}

std::vector<ir::CpuKernel> rms_norm_grad_kernels() {
  return row_kernels(
      "rms_norm_grad.vectors", plan_grad_vectors, "rms_norm_grad.plain",
      [](const OpInstance& op) { return plan_grad(op, nullptr); },
      []<class T>() { return run_backward<T>; });
}

}  // namespace rhea::ops
