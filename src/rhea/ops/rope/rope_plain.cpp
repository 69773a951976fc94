// rope in plain C++ for every floating point type, and the choice of its kernels.
#include <fmt/core.h>

#include <algorithm>

#include "rhea/ops/element.h"
#include "rhea/ops/rope/rope_kernels.h"
#include "rhea/ops/rope/rope_rows.h"
#include "rhea/ops/row_kernels.h"

namespace rhea::ops {
namespace {

using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;

constexpr int64_t kBlockElements = 16384;

struct State {
  int64_t tokens = 0, heads = 0, width = 0, pairs = 0, block = 1;
  bool interleaved = false, inverse = false;
  DType dtype = DType::f32;
  void (*rows_kernel)(const RopeRows&) = nullptr;  // of the vector kernels
};

// One head. Both elements of a pair are read before either is written, so y may be x.
template <class T>
void rotate(const State& state, const T* x, const float* cos, const float* sin, T* y) {
  using A = Accum<T>;
  for (int64_t i = 0; i < state.pairs; ++i) {
    const int64_t at_a = state.interleaved ? 2 * i : i;
    const int64_t at_b = state.interleaved ? at_a + 1 : i + state.pairs;
    const A a = static_cast<A>(x[at_a]), b = static_cast<A>(x[at_b]);
    const A c = cos[i], s = state.inverse ? -sin[i] : sin[i];
    y[at_a] = static_cast<T>(a * c - b * s);
    y[at_b] = static_cast<T>(a * s + b * c);
  }
  if (y != x) std::copy(x + 2 * state.pairs, x + state.width, y + 2 * state.pairs);
}

template <class T>
void run(const KernelArgs& args) {
  const auto& state = *static_cast<const State*>(args.state);
  const int64_t last = std::min(args.end * state.block, state.tokens);
  for (int64_t token = args.begin * state.block; token < last; ++token) {
    const int64_t table = args.in[3].as<const int32_t>()[token] * state.pairs;
    const T* x = args.in[0].as<const T>() + token * args.in[0].row_stride;
    T* y = args.out[0].as<T>() + token * args.out[0].row_stride;
    for (int64_t head = 0; head < state.heads; ++head)
      rotate(state, x + head * state.width, args.in[1].as<const float>() + table,
             args.in[2].as<const float>() + table, y + head * state.width);
  }
}

RopeRows rows_of_state(const State& state) {
  RopeRows rows{};
  rows.interleaved = state.interleaved;
  rows.inverse = state.inverse;
  rows.width = state.width;
  rows.pairs = state.pairs;
  return rows;
}

void run_rows(const KernelArgs& args) {
  const auto& state = *static_cast<const State*>(args.state);
  RopeRows rows = rows_of_state(state);
  rows.dtype = row_dtype(state.dtype);
  rows.begin = args.begin * state.block;
  rows.end = std::min(args.end * state.block, state.tokens);
  rows.heads = state.heads;
  rows.x = args.in[0].data;
  rows.x_stride = args.in[0].row_stride;
  rows.cos = args.in[1].as<const float>();
  rows.sin = args.in[2].as<const float>();
  rows.positions = args.in[3].as<const int32_t>();
  rows.y = args.out[0].data;
  rows.y_stride = args.out[0].row_stride;
  state.rows_kernel(rows);
}

// The heads of one token after another: a tile need not begin or end with a token.
void run_tile(const ir::RowTile& tile) {
  const auto& state = *static_cast<const State*>(tile.state);
  RopeRows rows = rows_of_state(state);
  rows.dtype = row_dtype(DType::f32);
  rows.cos = static_cast<const float*>(tile.in[1]);
  rows.sin = static_cast<const float*>(tile.in[2]);
  for (int64_t r = 0; r < tile.rows; r += rows.heads) {
    const int64_t head = (tile.first + r) % state.heads;
    rows.heads = std::min(state.heads - head, tile.rows - r);
    rows.positions = static_cast<const int32_t*>(tile.in[3]) + (tile.first + r) / state.heads;
    rows.end = 1;
    rows.x = static_cast<const float*>(tile.in[0]) + r * state.width;
    rows.y = tile.out[0] + r * state.width;
    state.rows_kernel(rows);
  }
}

std::shared_ptr<State> make_state(const OpInstance& op, void (*rows_kernel)(const RopeRows&)) {
  auto state = std::make_shared<State>();
  const ir::Shape& shape = op.in[0].shape;
  state->dtype = op.in[0].dtype;
  state->rows_kernel = rows_kernel;
  state->tokens = shape[0];
  state->heads = shape[1];
  state->width = shape[2];
  state->pairs = op.in[1].shape[1];
  state->block =
      std::max<int64_t>(1, kBlockElements / std::max<int64_t>(state->heads * state->width, 1));
  state->interleaved = op.attrs->flag("interleaved");
  state->inverse = op.attrs->flag("inverse");
  return state;
}

KernelPlan plan_rope(const OpInstance& op, void (*rows_kernel)(const RopeRows&)) {
  const auto state = make_state(op, rows_kernel);
  KernelPlan plan;
  plan.grid = {div_up(state->tokens, state->block)};
  plan.in_place = {{0, 0}};
  plan.strided_in = plan.strided_out = 1;
  plan.note = fmt::format("{} tokens per block", state->block);
  plan.state = state;
  if (rows_kernel) plan.run = run_rows;
  return plan;
}

KernelPlan plan_vectors(const OpInstance& op, Isa isa) {
  constexpr void (*kRows[])(const RopeRows&) = RHEA_PER_ISA_BF16(rope_rows);
  return plan_rope(op, kRows[static_cast<int>(isa)]);
}

}  // namespace

ir::RowPlan rope_tile(const OpInstance& op, Isa isa) {
  constexpr void (*kRows[])(const RopeRows&) = RHEA_PER_ISA_BF16(rope_rows);
  return {"rmmm->r", make_state(op, kRows[vector_isa(isa)]), run_tile};
}

std::vector<ir::CpuKernel> rope_kernels() {
  return row_kernels(
      "rope.vectors", plan_vectors, "rope.plain",
      [](const OpInstance& op) { return plan_rope(op, nullptr); },
      []<class T>() { return run<T>; });
}

}  // namespace rhea::ops
