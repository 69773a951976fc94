// Grouped products of any dtype and layout in plain C++: correct everywhere, fast nowhere.
#include <algorithm>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/ops/element.h"
#include "rhea/ops/grouped/grouped.h"
#include "rhea/ops/pack/layout.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;

struct State {
  int64_t rows = 0, groups = 0, m = 0, k = 0, n = 0;
  ir::Type w;  // with the leading two dims as one
  bool nk = false;
};

int64_t group_of(const int32_t* counts, int64_t groups, int64_t row, int64_t rows) {
  for (int64_t e = 0; e < groups; ++e) {
    const GroupRows group = group_rows(counts, e, rows);
    if (row < group.first + group.count) return e;
  }
  return -1;
}

// One item is one row of the result.
template <class T>
void run_product(const KernelArgs& args) {
  using Sum = Accum<T>;
  const auto& s = *static_cast<const State*>(args.state);
  auto* sum = static_cast<Sum*>(args.scratch);
  for (int64_t row = args.begin; row < args.end; ++row) {
    std::fill_n(sum, s.n, Sum{0});
    const int64_t e = group_of(args.in[2].as<const int32_t>(), s.groups, row, s.rows);
    const T* x = args.in[0].as<const T>() + row * args.in[0].row_stride;
    const T* w = args.in[1].as<const T>();
    for (int64_t k = 0; k < s.k && e >= 0; ++k) {
      for (int64_t j = 0; j < s.n; ++j) {
        const int64_t place =
            s.nk ? element_offset(s.w, e * s.n + j, k) : element_offset(s.w, e * s.k + k, j);
        sum[j] += static_cast<Sum>(x[k]) * static_cast<Sum>(w[place]);
      }
    }
    T* y = args.out[0].as<T>() + row * args.out[0].row_stride;
    for (int64_t j = 0; j < s.n; ++j) y[j] = static_cast<T>(sum[j]);
  }
}

KernelPlan plan_product(const OpInstance& op) {
  auto state = std::make_shared<State>();
  const ir::Type& w = op.in[1];
  state->rows = op.in[0].shape[0];
  state->k = op.in[0].shape[1];
  state->n = op.out[0].shape[1];
  state->groups = w.shape[0];
  state->nk = op.attrs->i64("rhs_contract") == 1;
  state->w = {w.dtype, {w.shape[0] * w.shape[1], w.shape[2]}, w.layout};
  KernelPlan plan;
  plan.grid = {state->rows};
  plan.scratch_bytes = state->n * static_cast<int64_t>(sizeof(double));
  plan.run = dispatch_float(op.in[0].dtype, []<class T>() { return run_product<T>; });
  plan.state = std::move(state);
  plan.strided_in = 1;
  plan.strided_out = 1;
  plan.note = "row by row in plain loops";
  return plan;
}

// One item is one row of the gradient of one group.
template <class T>
void run_grad(const KernelArgs& args) {
  using Sum = Accum<T>;
  const auto& s = *static_cast<const State*>(args.state);
  for (int64_t item = args.begin; item < args.end; ++item) {
    const int64_t e = item / s.m, i = item % s.m;
    const GroupRows group = group_rows(args.in[2].as<const int32_t>(), e, s.rows);
    Sum* c = args.out[0].as<Sum>() + item * s.n;
    std::fill_n(c, s.n, Sum{0});
    for (int64_t r = group.first; r < group.first + group.count; ++r) {
      const auto a = static_cast<Sum>(args.in[0].as<const T>()[r * args.in[0].row_stride + i]);
      const T* b = args.in[1].as<const T>() + r * args.in[1].row_stride;
      for (int64_t j = 0; j < s.n; ++j) c[j] += a * static_cast<Sum>(b[j]);
    }
  }
}

KernelPlan plan_grad(const OpInstance& op) {
  auto state = std::make_shared<State>();
  state->rows = op.in[0].shape[0];
  state->groups = op.out[0].shape[0];
  state->m = op.out[0].shape[1];
  state->n = op.out[0].shape[2];
  KernelPlan plan;
  plan.grid = {state->groups * state->m};
  plan.run = dispatch_float(op.in[0].dtype, []<class T>() { return run_grad<T>; });
  plan.state = std::move(state);
  plan.strided_in = 3;
  plan.note = "row by row in plain loops";
  return plan;
}

}  // namespace

ir::CpuKernel grouped_plain() { return {"plain", Isa::plain, nullptr, plan_product}; }
ir::CpuKernel grouped_grad_plain() { return {"plain", Isa::plain, nullptr, plan_grad}; }

}  // namespace rhea::ops
