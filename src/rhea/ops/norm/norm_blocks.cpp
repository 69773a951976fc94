// Grids of the normalisation kernels.
#include "rhea/ops/norm/norm_blocks.h"

#include <fmt/core.h>

namespace rhea::ops {
namespace {

// About 32 KB of x: enough to hide the cost of taking an item, little enough to balance.
constexpr int64_t kBlockElements = 16384;

std::shared_ptr<NormState> make_state(const ir::OpInstance& op) {
  auto state = std::make_shared<NormState>();
  state->rows = rows_of(op.in[0].shape);
  state->eps = op.attrs->f64("eps");
  if (op.attrs->has("weight_offset")) state->offset = op.attrs->f64("weight_offset");
  if (op.attrs->has("has_weight")) state->has_weight = op.attrs->flag("has_weight");
  if (op.attrs->has("has_bias")) state->has_bias = op.attrs->flag("has_bias");
  const int64_t per_token = std::max<int64_t>(state->rows.per_token * state->rows.width, 1);
  state->block_tokens = std::max<int64_t>(1, kBlockElements / per_token);
  return state;
}

}  // namespace

ir::KernelPlan plan_norm(const ir::OpInstance& op) {
  const auto state = make_state(op);
  state->num_blocks = div_up(state->rows.tokens, state->block_tokens);
  ir::KernelPlan plan;
  plan.grid = {state->num_blocks};
  plan.state = state;
  plan.in_place = {{0, 0}};
  if (op.in[0].rank() > 1) plan.strided_in = plan.strided_out = 1;
  plan.note = fmt::format("{} tokens per block", state->block_tokens);
  return plan;
}

ir::KernelPlan plan_norm_grad(const ir::OpInstance& op, std::initializer_list<int> strided,
                              int num_sums) {
  const auto state = make_state(op);
  state->block_tokens = std::max(state->block_tokens, div_up(state->rows.tokens, kMaxPartials));
  state->num_blocks = div_up(state->rows.tokens, state->block_tokens);
  state->num_sums = num_sums;
  ir::KernelPlan plan;
  plan.grid = {state->num_blocks, div_up(state->rows.width, kColumnChunk)};
  plan.workspace_bytes = num_sums * state->num_blocks * state->padded_width() *
                         dtype_size(accum_dtype(op.in[0].dtype));
  plan.state = state;
  plan.in_place = {{0, 0}};
  const uint64_t has_rows = op.in[0].rank() > 1 ? 1 : 0;  // of a single row there is no stride
  plan.strided_in = plan.strided_out = has_rows;
  for (const int i : strided) {
    plan.in_place.emplace_back(i, 0);
    plan.strided_in |= has_rows << i;
  }
  plan.note = fmt::format("{} blocks of {} tokens", state->num_blocks, state->block_tokens);
  return plan;
}

}  // namespace rhea::ops
