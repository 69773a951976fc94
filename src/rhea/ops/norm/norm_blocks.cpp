// Grids of the normalisation kernels.
#include "rhea/ops/norm/norm_blocks.h"

#include <fmt/core.h>

#include "rhea/ops/row_kernels.h"

namespace rhea::ops {
namespace {

std::shared_ptr<NormState> make_state(const ir::OpInstance& op,
                                      void (*rows_kernel)(const NormRows&)) {
  auto state = std::make_shared<NormState>();
  state->rows = rows_of(op.in[0].shape);
  state->dtype = op.in[0].dtype;
  state->rows_kernel = rows_kernel;
  state->eps = op.attrs->f64("eps");
  if (op.attrs->has("weight_offset")) state->offset = op.attrs->f64("weight_offset");
  if (op.attrs->has("has_weight")) state->has_weight = op.attrs->flag("has_weight");
  if (op.attrs->has("has_bias")) state->has_bias = op.attrs->flag("has_bias");
  const int64_t per_token = std::max<int64_t>(state->rows.per_token * state->rows.width, 1);
  // About 32 KB of x: enough to hide the cost of taking an item, little enough to balance.
  state->block_tokens = std::max<int64_t>(1, RowSums::kBlockElements / per_token);
  return state;
}

NormRows bind(const ir::KernelArgs& args, const NormState& state, int64_t begin, int64_t end) {
  NormRows rows{};
  rows.dtype = row_dtype(state.dtype);
  rows.begin = begin * state.block_tokens;
  rows.end = std::min(end * state.block_tokens, state.rows.tokens);
  rows.per_token = state.rows.per_token;
  rows.width = state.rows.width;
  rows.eps = static_cast<float>(state.eps);
  rows.offset = static_cast<float>(state.offset);
  rows.x = args.in[0].data;
  rows.x_stride = args.in[0].row_stride;
  rows.w = state.has_weight ? args.in[1].data : nullptr;
  rows.y = args.out[0].data;
  rows.y_stride = args.out[0].row_stride;
  return rows;
}

}  // namespace

void run_norm_rows(const ir::KernelArgs& args) {
  const auto& state = *static_cast<const NormState*>(args.state);
  NormRows rows = bind(args, state, args.begin, args.end);
  if (state.has_bias) rows.b = args.in[state.has_weight ? 2 : 1].data;
  state.rows_kernel(rows);
}

void run_norm_grad_rows(const ir::KernelArgs& args) {
  const auto& state = *static_cast<const NormState*>(args.state);
  if (args.phase == 1) {
    for (int sum = 0; sum < state.num_sums; ++sum)
      state.sums.join(args, sum, args.out[1 + sum].as<float>());
    return;
  }
  const ir::Buffer& dy = args.in[state.has_weight ? 2 : 1];
  for (int64_t block = args.begin; block < args.end; ++block) {
    NormRows rows = bind(args, state, block, block + 1);
    rows.dy = dy.data;
    rows.dy_stride = dy.row_stride;
    int sum = 0;
    if (state.has_weight) rows.dw = state.partial<float>(args, block, sum++);
    if (state.has_bias) rows.db = state.partial<float>(args, block, sum);
    for (float* part : {rows.dw, rows.db})
      if (part) std::fill_n(part, state.rows.width, 0.0f);
    state.rows_kernel(rows);
  }
}

ir::KernelPlan plan_norm(const ir::OpInstance& op, void (*rows_kernel)(const NormRows&)) {
  const auto state = make_state(op, rows_kernel);
  ir::KernelPlan plan;
  plan.grid = {div_up(state->rows.tokens, state->block_tokens)};
  plan.state = state;
  if (rows_kernel) plan.run = run_norm_rows;
  plan.in_place = {{0, 0}};
  if (op.in[0].rank() > 1) plan.strided_in = plan.strided_out = 1;
  plan.note = fmt::format("{} tokens per block", state->block_tokens);
  return plan;
}

ir::KernelPlan plan_norm_grad(const ir::OpInstance& op, std::initializer_list<int> strided,
                              int num_sums, void (*rows_kernel)(const NormRows&)) {
  const auto state = make_state(op, rows_kernel);
  state->sums = row_sums(op.in[0].shape);
  state->block_tokens = state->sums.block_tokens;
  state->num_sums = num_sums;
  ir::KernelPlan plan;
  plan.grid = {state->sums.num_blocks, state->sums.column_items()};
  plan.workspace_bytes = state->sums.workspace_bytes(num_sums, accum_dtype(op.in[0].dtype));
  plan.state = state;
  if (rows_kernel) plan.run = run_norm_grad_rows;
  plan.in_place = {{0, 0}};
  const uint64_t has_rows = op.in[0].rank() > 1 ? 1 : 0;  // of a single row there is no stride
  plan.strided_in = plan.strided_out = has_rows;
  for (const int i : strided) {
    plan.in_place.emplace_back(i, 0);
    plan.strided_in |= has_rows << i;
  }
  plan.note = fmt::format("{} blocks of {} tokens", state->sums.num_blocks, state->block_tokens);
  return plan;
}

namespace {

void run_norm_tile(const ir::RowTile& tile) {
  const auto& state = *static_cast<const NormState*>(tile.state);
  NormRows rows{};
  rows.dtype = row_dtype(state.dtype);
  rows.in_tiles = true;
  rows.end = tile.rows;
  rows.per_token = 1;
  rows.width = rows.x_stride = rows.y_stride = rows.dy_stride = tile.width;
  rows.eps = static_cast<float>(state.eps);
  rows.offset = static_cast<float>(state.offset);
  int operand = 0, result = 0;
  rows.x = tile.in[operand++];
  if (state.has_weight) rows.w = tile.in[operand++];
  rows.y = tile.out[result++];
  if (state.grad) {
    rows.dy = tile.in[operand];
    if (state.has_weight) rows.dw = tile.out[result++];
    if (state.has_bias) rows.db = tile.out[result];
  } else if (state.has_bias) {
    rows.b = tile.in[operand];
  }
  state.rows_kernel(rows);
}

}  // namespace

ir::RowPlan plan_norm_tile(const ir::OpInstance& op, std::string_view roles, bool grad,
                           void (*rows_kernel)(const NormRows&)) {
  const auto state = make_state(op, rows_kernel);
  state->grad = grad;
  return {roles, state, run_norm_tile};
}

}  // namespace rhea::ops
