// Products by our own loops on panels: every contraction of f32 and bf16 matrices, on every
// instruction set.
#include <fmt/core.h>

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/ops/dot_general/panel_kernels.h"
#include "rhea/ops/dot_general/product.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/table_per_isa.h"

RHEA_TABLE_PER_ISA(PanelKernels, kPanelKernels, panel_kernels)

namespace rhea::ops {
namespace {

using ir::KernelArgs;
using ir::KernelPlan;
using ir::Layout;
using ir::OpInstance;

// Items are blocks of rows by groups of panels. A thread that takes neighbouring items keeps its
// rows of A in L2, so small groups cost nothing and leave work to share.
constexpr int64_t kRowsPerBlock = 256;
constexpr int64_t kRowsWorthPacking = 32;
// Rows that pay for packing a panel of f32 again: it is a copy of contiguous pieces, which costs
// less than two parts in a hundred of their products.
constexpr int64_t kRowsPerPackedPanel = 1024;

struct State {
  Product p;
  const PanelKernels* kernels = nullptr;
  DType multiplied = DType::f32;  // what is packed here: f32 of bf16 that is widened
  int kernel = 0, packer = 0;     // indices of PanelKernels and of Packers
  int64_t panel_bytes = 0, num_panels = 0;
  int64_t rows_per_item = 0, panels_per_item = 0, num_groups = 1;
  bool packs = false;         // even phases pack an operand into the workspace
  bool packs_panels = false;  // each item packs the panels that it multiplies by, one at a time
  // A weight gradient sums over the tokens in chunks, each a pair of phases: the packed chunk then
  // stays in the shared cache. The narrower operand is packed in the first phase, for all; the
  // wider one 64 columns at a time by the item that multiplies them.
  int64_t chunk = 0;
  bool items_are_panels = false;  // of a weight gradient whose right operand is the wider one
  // weight_grad_squares: where the workspace has one f64 for each of the items, and the phase that
  // adds them up.
  int64_t squares = -1, num_items = 0;
  int sum_phase = -1;
  // weight_grad_add: adds the finished product to the third operand. `product` is where the
  // workspace has a product that is summed in several chunks: added one by one they would round
  // otherwise than the sum of them.
  bool adds = false;
  int64_t product = -1;
};

struct Chunk {
  int64_t first, count;  // of the reduction
};

void pack_panel(const Packers& packers, const KernelArgs& args, const State& s, Chunk chunk,
                int64_t panel, void* to) {
  const Product& p = s.p;
  const int64_t ld = args.in[1].row_stride, element = dtype_size(p.in), n = panel * kPanel;
  const char* src = args.in[1].as<char>() +
                    (p.b_transposed ? n * ld + chunk.first : chunk.first * ld + n) * element;
  (p.b_transposed ? packers.nk : packers.kn)[s.packer](
      src, ld, std::min(kPanel, p.n - n), chunk.count, panel_depth(chunk.count, s.multiplied), to);
}

// Rows [32 group, 32 group + 32) of the result of a weight gradient.
void pack_strips(const Packers& packers, const KernelArgs& args, const State& s, Chunk chunk,
                 int64_t group, void* to) {
  const int64_t element = dtype_size(s.p.in), stride = args.in[0].row_stride * element,
                m = group * kRowsPerStrip;
  packers.strips[s.packer](args.in[0].as<char>() + chunk.first * stride + m * element, stride,
                           std::min(kRowsPerStrip, s.p.m - m), chunk.count,
                           static_cast<uint32_t*>(to));
}

int64_t steps_of(const State& s, int64_t count) { return div_up(count, panel_pair(s.multiplied)); }

void pack_phase(const KernelArgs& args, const State& s, Chunk chunk) {
  auto* workspace = static_cast<char*>(args.workspace);
  for (int64_t item = args.begin; item < args.end; ++item) {
    if (s.items_are_panels)
      pack_strips(s.kernels->streamed, args, s, chunk, item,
                  workspace + item * strip_bytes(steps_of(s, chunk.count)));
    else
      pack_panel(s.kernels->streamed, args, s, chunk, item, workspace + item * s.panel_bytes);
  }
}

double* squares_of_items(const KernelArgs& args, const State& s) {
  return reinterpret_cast<double*>(static_cast<char*>(args.workspace) + s.squares);
}

void add_squares(const KernelArgs& args, const State& s) {
  const double* squares = squares_of_items(args, s);
  double sum = 0;
  for (int64_t i = 0; i < s.num_items; ++i) sum += squares[i];
  *args.out[1].as<double>() = sum;
}

// A block of the product added to the same block of the third operand, into the result.
void add_product(const KernelArgs& args, const StripBlock& product, int64_t m, int64_t n) {
  const ir::Buffer &sum = args.in[2], &out = args.out[0];
  for (int64_t i = 0; i < product.rows; ++i) {
    const float* from = sum.as<float>() + (m + i) * sum.row_stride + n;
    const float* row = product.c + i * product.ldc;
    float* to = out.as<float>() + (m + i) * out.row_stride + n;
    for (int64_t j = 0; j < product.columns; ++j) to[j] = from[j] + row[j];
  }
}

void weight_gradient(const KernelArgs& args, const State& s, Chunk chunk) {
  const Product& p = s.p;
  const bool in_workspace = s.product >= 0, last = chunk.first + chunk.count == p.k;
  const bool in_place = s.adds && !in_workspace && args.in[2].data == args.out[0].data;
  const int64_t ldc = in_workspace ? p.n : args.out[0].row_stride;
  auto* const c = in_workspace
                      ? reinterpret_cast<float*>(static_cast<char*>(args.workspace) + s.product)
                      : args.out[0].as<float>();
  for (int64_t item = args.begin; item < args.end; ++item) {
    const int64_t m = s.items_are_panels ? 0 : item * kRowsPerStrip,
                  n = s.items_are_panels ? item * kPanel : 0;
    StripBlock block{
        .k = chunk.count,
        .panel_bytes = s.panel_bytes,
        .c = c + m * ldc + n,
        .ldc = ldc,
        .add = in_place || chunk.first > 0,
        .stay_on_rows = s.items_are_panels,
        .squares = s.squares >= 0 && last ? squares_of_items(args, s) + item : nullptr};
    if (s.items_are_panels) {
      pack_panel(s.kernels->cached, args, s, chunk, item, args.scratch);
      block.strips = static_cast<const uint32_t*>(args.workspace);
      block.rows = p.m;
      block.panels = static_cast<const char*>(args.scratch);
      block.columns = std::min(kPanel, p.n - n);
    } else {
      pack_strips(s.kernels->cached, args, s, chunk, item, args.scratch);
      block.strips = static_cast<const uint32_t*>(args.scratch);
      block.rows = std::min(kRowsPerStrip, p.m - m);
      block.panels = static_cast<const char*>(args.workspace);
      block.columns = p.n;
    }
    s.kernels->strip[s.kernel](block);
    if (s.adds && last && !in_place) add_product(args, block, m, n);
  }
}

// An f32 block whose panel is packed on the way, part by part of the reduction.
void multiply_packing(const KernelArgs& args, const State& s, int64_t panel, RowsBlock block) {
  const int64_t k = block.k, parts = parts_of(k), ld = args.in[1].row_stride;
  const char *const a = block.a, *const b = args.in[1].as<char>();
  for (int64_t part = 0; part < parts; ++part) {
    const Chunk chunk{k * part / parts, k * (part + 1) / parts - k * part / parts};
    pack_panel(s.kernels->cached, args, s, chunk, panel, args.scratch);
    block.a = a + chunk.first * 4;
    block.k = chunk.count;
    block.panels = static_cast<const char*>(args.scratch);
    block.add = part > 0;
    const bool last = part + 1 == parts;
    const int64_t next_row = last ? 0 : chunk.first + chunk.count, next_panel = panel + last;
    block.next = b + (next_row * ld + next_panel * kPanel) * 4;
    block.next_stride = ld * 4;
    block.next_rows = next_panel < s.num_panels ? chunk.count : 0;
    s.kernels->rows[s.kernel](block);
  }
}

void run(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  const Product& p = s.p;
  if (args.phase == s.sum_phase) return add_squares(args, s);
  const int64_t k0 = s.packs ? args.phase / 2 * s.chunk : 0;
  const Chunk chunk{k0, std::min(s.chunk, p.k - k0)};
  if (s.packs && args.phase % 2 == 0) return pack_phase(args, s, chunk);
  if (p.a_transposed) return weight_gradient(args, s, chunk);
  const int64_t in_bytes = dtype_size(p.in), out_bytes = dtype_size(p.out);
  const char* panels = s.packs ? static_cast<const char*>(args.workspace) : args.in[1].as<char>();
  const int64_t a_stride = args.in[0].row_stride * in_bytes, ldc = args.out[0].row_stride;
  for (int64_t item = args.begin; item < args.end; ++item) {
    const int64_t m = item / s.num_groups * s.rows_per_item;
    const int64_t first = item % s.num_groups * s.panels_per_item, n = first * kPanel;
    RowsBlock block{.a = args.in[0].as<char>() + m * a_stride,
                    .a_stride = a_stride,
                    .rows = std::min(s.rows_per_item, p.m - m),
                    .k = p.k,
                    .panels = panels + first * s.panel_bytes,
                    .panel_bytes = s.panel_bytes,
                    .columns = std::min(s.panels_per_item * kPanel, p.n - n),
                    .c = args.out[0].as<char>() + (m * ldc + n) * out_bytes,
                    .ldc = ldc,
                    .bf16_result = p.out == DType::bf16,
                    .scratch = static_cast<char*>(args.scratch)};
    if (s.packs_panels)
      multiply_packing(args, s, first, block);
    else
      s.kernels->rows[s.kernel](block);
  }
}

// The input gradient of an f32 layer: rows of the weight are already what a panel holds.
bool packs_panels(const Product& p) {
  return p.in == DType::f32 && p.b_layout == Layout::row_major && !p.a_transposed &&
         !p.b_transposed;
}

std::string accepts(const OpInstance& node) {
  const Product p = product_of(node);
  if (p.in != DType::f32 && p.in != DType::bf16)
    return fmt::format("{} operands", dtype_name(p.in));
  if (p.out != DType::f32 && p.out != p.in) return fmt::format("result in {}", dtype_name(p.out));
  if (p.rank != 2) return "batched";
  if (p.a_transposed && p.out != DType::f32) return "transposed left operand with a result in bf16";
  return "";
}

KernelPlan plan_for(const OpInstance& node, Isa isa) {
  auto state = std::make_shared<State>();
  const Product p = state->p = product_of(node);
  state->kernels = &panel_kernels(isa);
  const bool bf16 = p.in == DType::bf16, widens = bf16 && p.a_transposed && !multiplies_bf16(isa);
  state->multiplied = widens ? DType::f32 : p.in;
  state->kernel = bf16 && !widens ? 1 : 0;
  state->packer = widens ? kWidened : state->kernel;
  const bool row_major = p.b_layout == Layout::row_major;
  state->packs_panels = packs_panels(p);
  state->packs = row_major && !state->packs_panels;
  const DType multiplied = state->multiplied;
  state->chunk = p.a_transposed ? kStripSteps * panel_pair(multiplied) : std::max<int64_t>(1, p.k);
  const int64_t longest =
      state->packs_panels ? div_up(p.k, parts_of(p.k)) : std::min(state->chunk, p.k);
  state->panel_bytes = panel_depth(longest, multiplied) * kPanel * dtype_size(multiplied);
  state->num_panels = div_up(p.n, kPanel);
  KernelPlan plan;
  plan.grid.clear();
  int64_t pack_items = state->num_panels, items = 0;
  if (p.a_transposed) {
    const int64_t groups = div_up(p.m, kRowsPerStrip),
                  strips = strip_bytes(steps_of(*state, longest));
    state->items_are_panels = p.n > p.m;
    items = state->items_are_panels ? state->num_panels : groups;
    pack_items = state->items_are_panels ? groups : state->num_panels;
    plan.workspace_bytes = pack_items * (state->items_are_panels ? strips : state->panel_bytes);
    plan.scratch_bytes = std::max(strips, state->panel_bytes);
    plan.note = items_note(state->items_are_panels);
  } else {
    state->rows_per_item = state->packs_panels ? kRowsPerPackedPanel : kRowsPerBlock;
    state->panels_per_item = state->packs_panels ? 1 : 8;
    state->num_groups = div_up(state->num_panels, state->panels_per_item);
    items = div_up(p.m, state->rows_per_item) * state->num_groups;
    plan.workspace_bytes = state->packs ? state->num_panels * state->panel_bytes : 0;
    plan.scratch_bytes = state->packs_panels ? state->panel_bytes
                         : bf16 ? rows_scratch_bytes(isa, std::min(p.m, kRowsPerBlock), p.k)
                                : 0;
    plan.note = fmt::format("{} rows by {} columns an item{}", state->rows_per_item,
                            state->panels_per_item * kPanel,
                            state->packs          ? ", right operand packed in each call"
                            : state->packs_panels ? ", each item packs its panel"
                                                  : "");
  }
  // One chunk at least: a sum over nothing still writes zeros.
  for (int64_t c = 0; c < std::max<int64_t>(1, div_up(p.k, state->chunk)); ++c) {
    if (state->packs) plan.grid.push_back(pack_items);
    plan.grid.push_back(items);
  }
  if (node.op == &kWeightGradSquares) {
    state->squares = round_up(plan.workspace_bytes, 64);
    state->num_items = items;
    plan.workspace_bytes = state->squares + items * 8;
    state->sum_phase = static_cast<int>(plan.grid.size());
    plan.grid.push_back(1);
  }
  plan.strided_in = row_major ? 3 : 1;
  if (node.op == &kWeightGradAdd) {
    state->adds = true;
    if (p.k > state->chunk) {
      state->product = round_up(plan.workspace_bytes, 64);
      plan.workspace_bytes = state->product + p.m * p.n * 4;
    }
    plan.in_place = {{2, 0}};
    plan.strided_in = 7;
  }
  plan.strided_out = 1;
  plan.state = std::move(state);
  plan.run = run;
  return plan;
}

}  // namespace

ir::CpuKernel panel_product(Isa isa) {
  constexpr const char* names[] = {"panels_plain", "panels_avx2", "panels_avx512",
                                   "panels_avx512_bf16"};
  auto refuse = [isa](const OpInstance& node) -> std::string {
    const Product p = product_of(node);
    if (isa == Isa::avx512_bf16 && p.in != DType::bf16) return "no bf16 operands";
    // oneDNN comes next and reads the right operand where it lies.
    const bool packs = p.b_layout == Layout::row_major;
    if (isa >= Isa::avx512 && packs && !p.a_transposed && p.m < kRowsWorthPacking)
      return fmt::format("{} rows do not pay for packing the right operand", p.m);
    return accepts(node);
  };
  return {names[static_cast<int>(isa)], isa, std::move(refuse),
          [isa](const OpInstance& node) { return plan_for(node, isa); }};
}

std::vector<ir::CpuKernel> weight_gradient_kernels() {
  std::vector<ir::CpuKernel> kernels;
  for (const Isa isa : {Isa::avx512_bf16, Isa::avx512, Isa::avx2, Isa::plain}) {
    kernels.push_back(panel_product(isa));
    // The types leave the others nothing to refuse.
    if (isa != Isa::avx512_bf16) kernels.back().accepts = nullptr;
  }
  return kernels;
}

}  // namespace rhea::ops
