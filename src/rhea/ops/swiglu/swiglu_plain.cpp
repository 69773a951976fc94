// swiglu in plain C++ for every floating point type, and the choice of its kernels.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rhea/ops/element.h"
#include "rhea/ops/row_kernels.h"
#include "rhea/ops/swiglu/swiglu_kernels.h"
#include "rhea/ops/swiglu/swiglu_rows.h"

namespace rhea::ops {
namespace {

using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;

constexpr int64_t kBlockElements = 16384;

// Rows of dim 0 in blocks; everything behind dim 0 is one row, and so is a tensor of rank 0 or 1.
struct State {
  int64_t rows = 1, width = 1, block = 1;
  DType dtype = DType::f32;
  bool grad = false;
  void (*rows_kernel)(const SwigluRows&) = nullptr;  // of the vector kernels
};

// Calls f(elements of a row, pointer offsets) for each row of the items.
template <class F>
void for_rows(const KernelArgs& args, F&& f) {
  const auto& state = *static_cast<const State*>(args.state);
  const int64_t last = std::min(args.end * state.block, state.rows);
  for (int64_t row = args.begin * state.block; row < last; ++row) f(row, state.width);
}

template <class T>
const T* in_row(const KernelArgs& args, int i, int64_t row) {
  return args.in[i].as<const T>() + row * args.in[i].row_stride;
}
template <class T>
T* out_row(const KernelArgs& args, int i, int64_t row) {
  return args.out[i].as<T>() + row * args.out[i].row_stride;
}

template <class T>
void run_forward(const KernelArgs& args) {
  using A = Accum<T>;
  for_rows(args, [&](int64_t row, int64_t width) {
    const T *gate = in_row<T>(args, 0, row), *up = in_row<T>(args, 1, row);
    T* y = out_row<T>(args, 0, row);
    for (int64_t i = 0; i < width; ++i) {
      const A g = static_cast<A>(gate[i]), s = A{1} / (A{1} + std::exp(-g));
      y[i] = static_cast<T>(round_to<T>(g * s) * static_cast<A>(up[i]));
    }
  });
}

template <class T>
void run_backward(const KernelArgs& args) {
  using A = Accum<T>;
  for_rows(args, [&](int64_t row, int64_t width) {
    const T *gate = in_row<T>(args, 0, row), *up = in_row<T>(args, 1, row);
    const T* dy = in_row<T>(args, 2, row);
    T *dgate = out_row<T>(args, 0, row), *dup = out_row<T>(args, 1, row);
    for (int64_t i = 0; i < width; ++i) {
      const A g = static_cast<A>(gate[i]), u = static_cast<A>(up[i]), d = static_cast<A>(dy[i]);
      const A s = A{1} / (A{1} + std::exp(-g));
      dgate[i] = static_cast<T>(d * u * (s * (A{1} + g * (A{1} - s))));
      dup[i] = static_cast<T>(d * round_to<T>(g * s));
    }
  });
}

void run_rows(const KernelArgs& args) {
  const auto& state = *static_cast<const State*>(args.state);
  const int64_t first = args.begin * state.block;
  SwigluRows rows{};
  rows.dtype = row_dtype(state.dtype);
  rows.rows = std::min(args.end * state.block, state.rows) - first;
  rows.width = state.width;
  const int64_t bytes = dtype_size(state.dtype);
  const auto at = [&](const ir::Buffer& buffer) {
    return static_cast<char*>(buffer.data) + first * buffer.row_stride * bytes;
  };
  rows.gate = at(args.in[0]);
  rows.gate_stride = args.in[0].row_stride;
  rows.up = at(args.in[1]);
  rows.up_stride = args.in[1].row_stride;
  if (state.grad) {
    rows.dy = at(args.in[2]);
    rows.dy_stride = args.in[2].row_stride;
  }
  for (int i = 0; i < (state.grad ? 2 : 1); ++i) {
    rows.out[i] = at(args.out[i]);
    rows.out_stride[i] = args.out[i].row_stride;
  }
  state.rows_kernel(rows);
}

KernelPlan plan_swiglu(const OpInstance& op, void (*rows_kernel)(const SwigluRows&)) {
  auto state = std::make_shared<State>();
  state->dtype = op.in[0].dtype;
  state->grad = op.in.size() == 3;
  state->rows_kernel = rows_kernel;
  const ir::Shape& shape = op.in[0].shape;
  const bool has_rows = shape.size() > 1;
  state->rows = has_rows ? shape[0] : 1;
  for (size_t i = has_rows ? 1 : 0; i < shape.size(); ++i) state->width *= shape[i];
  state->block = std::max<int64_t>(1, kBlockElements / std::max<int64_t>(state->width, 1));
  KernelPlan plan;
  plan.grid = {div_up(state->rows, state->block)};
  for (int i = 0; i < static_cast<int>(op.in.size()); ++i) {
    if (has_rows) plan.strided_in |= uint64_t{1} << i;
    for (int j = 0; j < static_cast<int>(op.out.size()); ++j) plan.in_place.emplace_back(i, j);
  }
  if (has_rows) plan.strided_out = (uint64_t{1} << op.out.size()) - 1;
  plan.note = fmt::format("{} rows per block", state->block);
  plan.state = state;
  if (rows_kernel) plan.run = run_rows;
  return plan;
}

KernelPlan plan_vectors(const OpInstance& op, Isa isa) {
  constexpr void (*kRows[])(const SwigluRows&) = RHEA_PER_ISA_BF16(swiglu_rows);
  return plan_swiglu(op, kRows[static_cast<int>(isa)]);
}
KernelPlan plan_grad_vectors(const OpInstance& op, Isa isa) {
  constexpr void (*kRows[])(const SwigluRows&) = RHEA_PER_ISA_BF16(swiglu_grad_rows);
  return plan_swiglu(op, kRows[static_cast<int>(isa)]);
}

}  // namespace

std::vector<ir::CpuKernel> swiglu_kernels() {
  return row_kernels(
      "swiglu.vectors", plan_vectors, "swiglu.plain",
      [](const OpInstance& op) { return plan_swiglu(op, nullptr); },
      []<class T>() { return run_forward<T>; });
}

std::vector<ir::CpuKernel> swiglu_grad_kernels() {
  return row_kernels(
      "swiglu_grad.vectors", plan_grad_vectors, "swiglu_grad.plain",
      [](const OpInstance& op) { return plan_swiglu(op, nullptr); },
      []<class T>() { return run_backward<T>; });
}

}  // namespace rhea::ops
