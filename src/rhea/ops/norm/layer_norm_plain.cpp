// LayerNorm in plain C++ for every floating point type, and the lists of kernels.
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
struct LayerRow {
  using A = Accum<T>;
  const T* w;  // null: ones
  const T* b;  // null: zeros
  int64_t width;
  A eps;

  struct Moments {
    A mean, r;
  };
  // In f64: with a mean far from zero the differences would cancel.
  Moments moments(const T* x) const {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < width; ++i) mean += static_cast<double>(static_cast<A>(x[i]));
    mean /= static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i) {
      const double d = static_cast<double>(static_cast<A>(x[i])) - mean;
      variance += d * d;
    }
    const double r = 1 / std::sqrt(variance / static_cast<double>(width) + double{eps});
    return {static_cast<A>(mean), static_cast<A>(r)};
  }
  A scale(int64_t i) const { return w ? static_cast<A>(w[i]) : A{1}; }

  void forward(const T* x, T* y) const {
    const Moments m = moments(x);
    for (int64_t i = 0; i < width; ++i) {
      const A n = (static_cast<A>(x[i]) - m.mean) * m.r;
      y[i] = static_cast<T>(n * scale(i) + (b ? static_cast<A>(b[i]) : A{0}));
    }
  }

  void backward(const T* x, const T* dy, T* dx, A* dw, A* db) const {
    const Moments m = moments(x);
    A mean_g = 0, mean_gn = 0;
    for (int64_t i = 0; i < width; ++i) {
      const A g = static_cast<A>(dy[i]) * scale(i);
      mean_g += g;
      mean_gn += g * ((static_cast<A>(x[i]) - m.mean) * m.r);
    }
    mean_g /= static_cast<A>(width);
    mean_gn /= static_cast<A>(width);
    for (int64_t i = 0; i < width; ++i) {
      const A d = static_cast<A>(dy[i]), n = (static_cast<A>(x[i]) - m.mean) * m.r;
      if (dw) dw[i] += d * n;
      if (db) db[i] += d;
      dx[i] = static_cast<T>(m.r * (d * scale(i) - mean_g - n * mean_gn));
    }
  }
};

template <class T>
void run_forward(const KernelArgs& args) {
  const auto& state = *static_cast<const NormState*>(args.state);
  int operand = 1;
  const T* w = state.has_weight ? args.in[operand++].as<const T>() : nullptr;
  const T* b = state.has_bias ? args.in[operand].as<const T>() : nullptr;
  const LayerRow<T> row{w, b, state.rows.width, static_cast<Accum<T>>(state.eps)};
  for_rows(state, args.begin, args.end, [&](int64_t token, int64_t inner) {
    row.forward(args.in[0].as<const T>() + token * args.in[0].row_stride + inner,
                args.out[0].as<T>() + token * args.out[0].row_stride + inner);
  });
}

template <class T>
void run_backward(const KernelArgs& args) {
  using A = Accum<T>;
  const auto& state = *static_cast<const NormState*>(args.state);
  if (args.phase == 1) {
    for (int sum = 0; sum < state.num_sums; ++sum)
      state.sums.join(args, sum, args.out[1 + sum].as<A>());
    return;
  }
  const T* w = state.has_weight ? args.in[1].as<const T>() : nullptr;
  const ir::Buffer& dy = args.in[state.has_weight ? 2 : 1];
  const LayerRow<T> row{w, nullptr, state.rows.width, static_cast<A>(state.eps)};
  for (int64_t block = args.begin; block < args.end; ++block) {
    int sum = 0;
    A* dw = state.has_weight ? state.partial<A>(args, block, sum++) : nullptr;
    A* db = state.has_bias ? state.partial<A>(args, block, sum) : nullptr;
    if (dw) std::fill_n(dw, state.rows.width, A{0});
    if (db) std::fill_n(db, state.rows.width, A{0});
    for_rows(state, block, block + 1, [&](int64_t token, int64_t inner) {
      row.backward(args.in[0].as<const T>() + token * args.in[0].row_stride + inner,
                   dy.as<const T>() + token * dy.row_stride + inner,
                   args.out[0].as<T>() + token * args.out[0].row_stride + inner, dw, db);
    });
  }
}

using RowsKernel = void (*)(const NormRows&);

KernelPlan plan_vectors(const OpInstance& op, Isa isa) {
  constexpr RowsKernel kRows[] = RHEA_PER_ISA_BF16(layer_norm_rows);
  return plan_norm(op, kRows[static_cast<int>(isa)]);
}
KernelPlan plan_grad(const OpInstance& op, RowsKernel rows) {
  return plan_norm_grad(op, {op.attrs->flag("has_weight") ? 2 : 1},
                        static_cast<int>(op.out.size()) - 1, rows);
}
KernelPlan plan_grad_vectors(const OpInstance& op, Isa isa) {
  constexpr RowsKernel kRows[] = RHEA_PER_ISA_BF16(layer_norm_grad_rows);
  return plan_grad(op, kRows[static_cast<int>(isa)]);
}

}  // namespace

ir::RowPlan layer_norm_tile(const OpInstance& op, Isa isa) {
  constexpr RowsKernel kRows[] = RHEA_PER_ISA_BF16(layer_norm_rows);
  constexpr std::string_view kRoles[] = {"r->r", "rv->r", "rvv->r"};
  return plan_norm_tile(op, kRoles[op.in.size() - 1], false, kRows[vector_isa(isa)]);
}
ir::RowPlan layer_norm_grad_tile(const OpInstance& op, Isa isa) {
  constexpr RowsKernel kRows[] = RHEA_PER_ISA_BF16(layer_norm_grad_rows);
  constexpr std::string_view kRoles[2][3] = {{"rr->r", "rr->rs", ""}, {"", "rvr->rs", "rvr->rss"}};
  return plan_norm_tile(op, kRoles[op.in.size() - 2][op.out.size() - 1], true,
                        kRows[vector_isa(isa)]);
}

std::vector<ir::CpuKernel> layer_norm_kernels() {
  return row_kernels(
      "layer_norm.vectors", plan_vectors, "layer_norm.plain",
      [](const OpInstance& op) { return plan_norm(op); }, []<class T>() { return run_forward<T>; });
}

std::vector<ir::CpuKernel> layer_norm_grad_kernels() {
  return row_kernels(
      "layer_norm_grad.vectors", plan_grad_vectors, "layer_norm_grad.plain",
      [](const OpInstance& op) { return plan_grad(op, nullptr); },
      []<class T>() { return run_backward<T>; });
}

}  // namespace rhea::ops
