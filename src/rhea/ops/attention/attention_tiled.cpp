// Plans of the tiled attention kernels (tiles.cpp).
#include <fmt/core.h>

#include <algorithm>

#include "rhea/ops/attention/attention_kernels.h"
#include "rhea/ops/attention/attention_state.h"
#include "rhea/ops/attention/tile_args.h"

namespace rhea::ops {
namespace {

using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;

struct IsaKernels {
  Isa isa;
  std::string_view name, grad_name;
  void (*forward)(const AttentionTiles&, int64_t, int64_t);
  void (*backward)(const AttentionTiles&, int64_t, int64_t);
  int64_t (*forward_scratch)(const AttentionTiles&);
  int64_t (*backward_scratch)(const AttentionTiles&);
};

#define RHEA_ATTENTION_TILES(isa)                                                                  \
  {                                                                                                \
    Isa::isa, "attention.tiles_" #isa, "attention_grad.tiles_" #isa, isa_##isa::attention_forward, \
        isa_##isa::attention_backward, isa_##isa::attention_forward_scratch,                       \
        isa_##isa::attention_backward_scratch                                                      \
  }
constexpr IsaKernels kIsas[] = {
// needed before dynamic initialisation
#if defined(__x86_64__)
    RHEA_ATTENTION_TILES(avx512_bf16),
    RHEA_ATTENTION_TILES(avx512),
    RHEA_ATTENTION_TILES(avx2),
#endif
    RHEA_ATTENTION_TILES(plain),
};
#undef RHEA_ATTENTION_TILES

struct State : AttentionState {
  AttentionTiles tiles{};
  const IsaKernels* isa = nullptr;
  State(const OpInstance& op, bool grad) : AttentionState(op, grad) {}
};

std::string accepts(const IsaKernels& isa, const OpInstance& op) {
  const AttentionShape shape = AttentionShape::of(op);
  if (shape.dtype != DType::bf16 && (shape.dtype != DType::f32 || isa.isa == Isa::avx512_bf16))
    return fmt::format("no {} variant", dtype_name(shape.dtype));
  if (shape.empty()) return "nothing to compute";
  if (shape.has_bias && shape.softcap > 0) return "a soft cap and a position bias";
  if (shape.row > INT32_MAX - kTileMaxBlock) return "rows of more than 2^31 tokens";
  return "";
}

std::shared_ptr<State> make_state(const IsaKernels& isa, const OpInstance& op, bool grad) {
  auto state = std::make_shared<State>(op, grad);
  const AttentionShape& shape = state->shape;
  AttentionTiles& tiles = state->tiles;
  state->isa = &isa;
  tiles.row = shape.row;
  tiles.query_heads = shape.query_heads;
  tiles.kv_heads = shape.kv_heads;
  tiles.group = shape.group;
  tiles.width = shape.width;
  tiles.value_width = shape.value_width;
  tiles.window = shape.window;
  tiles.documents = shape.documents;
  tiles.is_bf16 = shape.dtype == DType::bf16;
  tiles.sink_is_bf16 = state->sink_dtype == DType::bf16;
  tiles.has_bias = shape.has_bias;
  tiles.bias_row = shape.bias_row;
  tiles.scale = static_cast<float>(shape.scale);
  tiles.softcap = static_cast<float>(shape.softcap);
  // Few heads: cut the queries too, so that more threads find work. Each item packs the keys that
  // it needs, which costs little from 512 queries on.
  constexpr int64_t kEnoughItems = 16, kMinChunk = 512;
  tiles.num_pairs = shape.rows * shape.kv_heads;
  const int64_t wanted = div_up(kEnoughItems, tiles.num_pairs);
  tiles.chunk = std::max(kMinChunk, round_up(div_up(shape.row, wanted), kTileMaxBlock));
  tiles.num_chunks = div_up(shape.row, tiles.chunk);
  return state;
}

TileOperand operand(const ir::Buffer& buffer) { return {buffer.data, buffer.row_stride}; }

AttentionTiles bind(const KernelArgs& args, const State& state) {
  AttentionTiles tiles = state.tiles;
  tiles.q = operand(args.in[0]);
  tiles.k = operand(args.in[1]);
  tiles.v = operand(args.in[2]);
  tiles.positions = args.in[3].as<const int32_t>();
  tiles.sink = state.at.sink >= 0 ? args.in[state.at.sink].data : nullptr;
  tiles.bias = state.bias(args, 0);
  tiles.scratch = args.scratch;
  return tiles;
}

void run_forward(const KernelArgs& args) {
  const auto& state = *static_cast<const State*>(args.state);
  AttentionTiles tiles = bind(args, state);
  tiles.o = operand(args.out[0]);
  tiles.lse = args.out[1].as<float>();
  state.isa->forward(tiles, args.begin, args.end);
}

void run_backward(const KernelArgs& args) {
  const auto& state = *static_cast<const State*>(args.state);
  if (args.phase == 1) return sum_sink_rows<float>(args, state.shape);
  AttentionTiles tiles = bind(args, state);
  tiles.o = operand(args.in[state.at.o]);
  tiles.lse = args.in[state.at.lse].as<float>();
  tiles.d_o = operand(args.in[state.at.d_o]);
  tiles.d_lse = state.at.d_lse >= 0 ? args.in[state.at.d_lse].as<const float>() : nullptr;
  tiles.dq = operand(args.out[0]);
  tiles.dk = operand(args.out[1]);
  tiles.dv = operand(args.out[2]);
  tiles.d_sink = state.shape.has_sink ? static_cast<float*>(args.workspace) : nullptr;
  state.isa->backward(tiles, args.begin, args.end);
}

KernelPlan plan_forward(const IsaKernels& isa, const OpInstance& op) {
  const auto state = make_state(isa, op, false);
  KernelPlan plan;
  plan.grid = {state->tiles.num_pairs * state->tiles.num_chunks};
  plan.scratch_bytes = isa.forward_scratch(state->tiles);
  plan.strided_in = 0b111;
  plan.strided_out = 0b1;
  plan.run = run_forward;
  plan.note = fmt::format("{} queries per item", std::min(state->tiles.chunk, state->shape.row));
  plan.state = state;
  return plan;
}

KernelPlan plan_backward(const IsaKernels& isa, const OpInstance& op) {
  const auto state = make_state(isa, op, true);
  KernelPlan plan;
  plan.grid = {state->tiles.num_pairs};
  plan_sink_sums(state->shape, plan);
  plan.scratch_bytes = isa.backward_scratch(state->tiles);
  plan.strided_in = plan.strided_out = 0b111;
  plan.run = run_backward;
  plan.note = "one pass per kv head";
  plan.state = state;
  return plan;
}

}  // namespace

std::vector<ir::CpuKernel> attention_kernels() {
  std::vector<ir::CpuKernel> kernels;
  for (const IsaKernels& isa : kIsas)
    kernels.push_back({.name = isa.name,
                       .isa = isa.isa,
                       .accepts = [&isa](const OpInstance& op) { return accepts(isa, op); },
                       .plan = [&isa](const OpInstance& op) { return plan_forward(isa, op); }});
  kernels.push_back(attention_plain_kernel());
  return kernels;
}

std::vector<ir::CpuKernel> attention_grad_kernels() {
  std::vector<ir::CpuKernel> kernels;
  for (const IsaKernels& isa : kIsas)
    kernels.push_back({.name = isa.grad_name,
                       .isa = isa.isa,
                       .accepts = [&isa](const OpInstance& op) { return accepts(isa, op); },
                       .plan = [&isa](const OpInstance& op) { return plan_backward(isa, op); }});
  kernels.push_back(attention_grad_plain_kernel());
  return kernels;
}

}  // namespace rhea::ops
