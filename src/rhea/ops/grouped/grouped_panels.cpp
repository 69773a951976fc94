// Grouped products by the loops on panels that dot_general has (dot_general/panel_kernels.h).
//
// Forward: an item is a group by a few panels of its matrix, with all rows of the group, in blocks
// that stay in L2; so a weight that is not packed is packed once, by the item that reads it, and
// the grid does not depend on the data. Gradient: the narrower operand is packed for all groups in
// a first phase, the wider one 64 columns at a time by the item that multiplies them.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/ops/dot_general/panel_kernels.h"
#include "rhea/ops/grouped/grouped.h"
#include "rhea/ops/pack/layout.h"

namespace rhea::ops {
namespace {

using ir::KernelArgs;
using ir::KernelPlan;
using ir::Layout;
using ir::OpInstance;

constexpr int64_t kRowsPerBlock = 256;
constexpr int64_t kPanelsPerItem = 2;

// Blocks of equal length, so that a group of a few rows more than a block has no tiny one.
struct Blocks {
  int64_t count, rows;
};
Blocks cut_rows(int64_t rows) {
  const int64_t count = div_up(rows, kRowsPerBlock + kRowsPerBlock / 2);
  return {count, count == 0 ? 0 : div_up(rows, count)};
}
constexpr int64_t kMostRowsOfBlock = kRowsPerBlock + kRowsPerBlock / 2;

std::string refuse_dtype(const OpInstance& op, Isa isa) {
  const DType dtype = op.in[0].dtype;
  if (dtype != DType::f32 && dtype != DType::bf16)
    return fmt::format("{} operands", dtype_name(dtype));
  return isa == Isa::avx512_bf16 && dtype != DType::bf16 ? "no bf16 operands" : "";
}

const char* kernel_name(Isa isa) {
  constexpr const char* names[] = {"panels_plain", "panels_avx2", "panels_avx512",
                                   "panels_avx512_bf16"};
  return names[static_cast<int>(isa)];
}

// ---- forward
struct Product {
  const PanelKernels* kernels = nullptr;
  DType type = DType::f32;
  int dtype = 0;  // index of PanelKernels
  int64_t rows = 0, groups = 0, k = 0, n = 0;
  bool nk = false, packed = false;
  int64_t num_items = 0;       // of a group
  int64_t panel_bytes = 0;     // from one panel of the operand, or of the scratch, to the next
  int64_t scratch_panels = 0;  // bytes
};

// Panels [panel, panel + kPanelsPerItem) of group e: where they lie, or packed into `to`.
const char* panels_of(const KernelArgs& args, const Product& p, int64_t e, int64_t panel,
                      char* to) {
  const int64_t element = dtype_size(p.type);
  const char* w = args.in[1].as<const char>();
  if (p.packed)
    return p.nk ? w + (e * (p.n / kPanel) + panel) * p.panel_bytes
                : w + panel * p.panel_bytes + e * p.k * kPanel * element;
  w += e * p.n * p.k * element;
  for (int64_t i = 0; i < kPanelsPerItem && (panel + i) * kPanel < p.n; ++i) {
    const int64_t n = (panel + i) * kPanel, columns = std::min(kPanel, p.n - n);
    if (p.nk)
      p.kernels->cached.nk[p.dtype](w + n * p.k * element, p.k, columns, p.k,
                                    panel_depth(p.k, p.type), to + i * p.panel_bytes);
    else
      p.kernels->cached.kn[p.dtype](w + n * element, p.n, columns, p.k, panel_depth(p.k, p.type),
                                    to + i * p.panel_bytes);
  }
  return to;
}

void run_product(const KernelArgs& args) {
  const auto& p = *static_cast<const Product*>(args.state);
  const auto* counts = args.in[2].as<const int32_t>();
  const int64_t element = dtype_size(p.type), a_stride = args.in[0].row_stride * element,
                ldc = args.out[0].row_stride;
  auto* scratch = static_cast<char*>(args.scratch);
  for (int64_t item = args.begin; item < args.end; ++item) {
    const int64_t e = item / p.num_items, panel = item % p.num_items * kPanelsPerItem,
                  n = panel * kPanel, columns = std::min(kPanelsPerItem * kPanel, p.n - n);
    const GroupRows group = group_rows(counts, e, p.rows);
    char* c = args.out[0].as<char>() + n * element;
    if (e == p.groups - 1) {  // rows of no group
      for (int64_t r = group.first + group.count; r < p.rows; ++r)
        std::memset(c + r * ldc * element, 0, static_cast<size_t>(columns * element));
    }
    if (group.count == 0) continue;
    const char* panels = panels_of(args, p, e, panel, scratch);
    const Blocks blocks = cut_rows(group.count);
    for (int64_t b = 0; b < blocks.count; ++b) {
      const int64_t from = b * blocks.rows, m = group.first + from;
      p.kernels->rows[p.dtype]({.a = args.in[0].as<const char>() + m * a_stride,
                                .a_stride = a_stride,
                                .rows = std::min(blocks.rows, group.count - from),
                                .k = p.k,
                                .panels = panels,
                                .panel_bytes = p.panel_bytes,
                                .columns = columns,
                                .c = c + m * ldc * element,
                                .ldc = ldc,
                                .bf16_result = p.type == DType::bf16,
                                .scratch = scratch + p.scratch_panels});
    }
  }
}

KernelPlan plan_product(const OpInstance& op, Isa isa) {
  auto state = std::make_shared<Product>();
  const ir::Type& w = op.in[1];
  Product& p = *state;
  p.kernels = &panel_kernels(isa);
  p.type = op.in[0].dtype;
  p.dtype = p.type == DType::bf16 ? 1 : 0;
  p.rows = op.in[0].shape[0];
  p.k = op.in[0].shape[1];
  p.n = op.out[0].shape[1];
  p.groups = w.shape[0];
  p.nk = op.attrs->i64("rhs_contract") == 1;
  p.packed = w.layout != Layout::row_major;
  p.num_items = div_up(p.n, kPanel * kPanelsPerItem);
  // The reduction of a packed [E,K,N] runs over all groups.
  const int64_t depth = panel_depth(p.packed && !p.nk ? p.groups * p.k : p.k, p.type);
  p.panel_bytes = depth * kPanel * dtype_size(p.type);
  p.scratch_panels = p.packed ? 0 : kPanelsPerItem * p.panel_bytes;
  KernelPlan plan;
  plan.grid = {p.groups * p.num_items};
  plan.scratch_bytes = p.scratch_panels;
  if (p.type == DType::bf16)
    plan.scratch_bytes += rows_scratch_bytes(isa, std::min(p.rows, kMostRowsOfBlock), p.k);
  plan.strided_in = 1;
  plan.strided_out = 1;
  plan.note = fmt::format("{} columns of a group an item{}", kPanelsPerItem * kPanel,
                          p.packed ? "" : ", right operand packed in each call");
  plan.state = std::move(state);
  plan.run = run_product;
  return plan;
}

// ---- gradient of the matrices
struct Grad {
  const PanelKernels* kernels = nullptr;
  DType type = DType::f32, multiplied = DType::f32;  // f32 of bf16 that is widened
  int kernel = 0, packer = 0;                        // indices of PanelKernels and of Packers
  int64_t rows = 0, groups = 0, m = 0, n = 0;
  bool items_are_panels = false;          // the right operand is the wider one
  int64_t num_packed = 0, num_items = 0;  // of a group: strips or panels
  int64_t scratch_of_item = 0;
};

// A part of a group's rows whose packed operands stay in L2, and where it begins in the workspace.
struct Part {
  int64_t first, count;  // rows
  int64_t steps_before;  // of the reduction, in the workspace: of all parts before
  int64_t parts_before;
};

int64_t steps_of(const Grad& g, int64_t rows) { return div_up(rows, panel_pair(g.multiplied)); }

// Calls f(Part) for the parts of group e in order.
template <class F>
void for_each_part(const Grad& g, const int32_t* counts, int64_t e, const F& f) {
  const int64_t longest = kStripSteps * panel_pair(g.multiplied);
  Part part{0, 0, 0, 0};
  for (int64_t i = 0, first = 0; i <= e; ++i) {
    // As group_rows() cuts them, without walking from the start for each.
    const int64_t count = std::clamp<int64_t>(static_cast<int64_t>(counts[i]), 0, g.rows - first);
    for (int64_t from = 0; from < count; from += longest) {
      part.first = first + from;
      part.count = std::min(longest, count - from);
      if (i == e) f(part);
      part.steps_before += steps_of(g, part.count);
      ++part.parts_before;
    }
    first += count;
  }
}

// Strips: 32 columns of the left operand over the rows of a part; panels: of the right one.
void pack_strips(const Packers& packers, const KernelArgs& args, const Grad& g, const Part& part,
                 int64_t group, void* to) {
  const int64_t element = dtype_size(g.type), stride = args.in[0].row_stride * element,
                m = group * kRowsPerStrip;
  packers.strips[g.packer](args.in[0].as<const char>() + part.first * stride + m * element, stride,
                           std::min(kRowsPerStrip, g.m - m), part.count,
                           static_cast<uint32_t*>(to));
}
void pack_panel(const Packers& packers, const KernelArgs& args, const Grad& g, const Part& part,
                int64_t panel, void* to) {
  const int64_t element = dtype_size(g.type), ld = args.in[1].row_stride, n = panel * kPanel;
  packers.kn[g.packer](args.in[1].as<const char>() + (part.first * ld + n) * element, ld,
                       std::min(kPanel, g.n - n), part.count,
                       steps_of(g, part.count) * panel_pair(g.multiplied), to);
}

int64_t panel_bytes(int64_t steps) { return steps * kPanel * 4; }

// Where strips or panels of a part begin in the workspace.
char* packed_part(const KernelArgs& args, const Grad& g, const Part& part) {
  const int64_t one =
      g.items_are_panels ? strip_bytes(part.steps_before) + (part.parts_before - 1) * strip_bytes(0)
                         : panel_bytes(part.steps_before);
  return static_cast<char*>(args.workspace) + g.num_packed * one;
}

void pack_phase(const KernelArgs& args, const Grad& g, const int32_t* counts) {
  for (int64_t item = args.begin; item < args.end; ++item) {
    const int64_t e = item / g.num_packed, index = item % g.num_packed;
    for_each_part(g, counts, e, [&](const Part& part) {
      char* at = packed_part(args, g, part);
      const int64_t steps = steps_of(g, part.count);
      if (g.items_are_panels)
        pack_strips(g.kernels->streamed, args, g, part, index, at + index * strip_bytes(steps));
      else
        pack_panel(g.kernels->streamed, args, g, part, index, at + index * panel_bytes(steps));
    });
  }
}

void run_grad(const KernelArgs& args) {
  const auto& g = *static_cast<const Grad*>(args.state);
  const auto* counts = args.in[2].as<const int32_t>();
  if (args.phase == 0) return pack_phase(args, g, counts);
  for (int64_t item = args.begin; item < args.end; ++item) {
    const int64_t e = item / g.num_items, index = item % g.num_items;
    float* c = args.out[0].as<float>() + e * g.m * g.n;
    // This item's rows or columns of the gradient.
    const int64_t row = g.items_are_panels ? 0 : index * kRowsPerStrip,
                  column = g.items_are_panels ? index * kPanel : 0,
                  rows = g.items_are_panels ? g.m : std::min(kRowsPerStrip, g.m - row),
                  columns = g.items_are_panels ? std::min(kPanel, g.n - column) : g.n;
    bool add = false;
    for_each_part(g, counts, e, [&](const Part& part) {
      const char* packed = packed_part(args, g, part);
      if (g.items_are_panels)
        pack_panel(g.kernels->cached, args, g, part, index, args.scratch);
      else
        pack_strips(g.kernels->cached, args, g, part, index, args.scratch);
      const char* own = static_cast<const char*>(args.scratch);
      g.kernels->strip[g.kernel](
          {.strips = reinterpret_cast<const uint32_t*>(g.items_are_panels ? packed : own),
           .rows = rows,
           .k = part.count,
           .panels = g.items_are_panels ? own : packed,
           .panel_bytes = panel_bytes(steps_of(g, part.count)),
           .columns = columns,
           .c = c + row * g.n + column,
           .ldc = g.n,
           .add = add,
           .stay_on_rows = g.items_are_panels});
      add = true;
    });
    if (add) continue;
    for (int64_t i = 0; i < rows; ++i)  // a group without rows
      std::fill_n(c + (row + i) * g.n + column, columns, 0.0F);
  }
}

KernelPlan plan_grad(const OpInstance& op, Isa isa) {
  auto state = std::make_shared<Grad>();
  Grad& g = *state;
  g.kernels = &panel_kernels(isa);
  g.type = op.in[0].dtype;
  const bool widens = g.type == DType::bf16 && !multiplies_bf16(isa);
  g.multiplied = widens ? DType::f32 : g.type;
  g.kernel = g.multiplied == DType::bf16 ? 1 : 0;
  g.packer = widens ? kWidened : g.kernel;
  g.rows = op.in[0].shape[0];
  g.groups = op.out[0].shape[0];
  g.m = op.out[0].shape[1];
  g.n = op.out[0].shape[2];
  g.items_are_panels = g.n > g.m;
  const int64_t strips = div_up(g.m, kRowsPerStrip), panels = div_up(g.n, kPanel);
  g.num_packed = g.items_are_panels ? strips : panels;
  g.num_items = g.items_are_panels ? panels : strips;
  // However the rows fall: a group may add an unfilled step and an unfilled part.
  const int64_t steps = steps_of(g, g.rows) + g.groups, parts = steps / kStripSteps + g.groups,
                longest = std::min(steps, kStripSteps);
  KernelPlan plan;
  plan.grid = {g.groups * g.num_packed, g.groups * g.num_items};
  plan.workspace_bytes =
      g.num_packed *
      (g.items_are_panels ? strip_bytes(steps) + parts * strip_bytes(0) : panel_bytes(steps));
  plan.scratch_bytes = std::max(strip_bytes(longest), panel_bytes(longest));
  plan.strided_in = 3;
  plan.note = items_note(g.items_are_panels);
  plan.state = std::move(state);
  plan.run = run_grad;
  return plan;
}

}  // namespace

ir::CpuKernel grouped_panels(Isa isa) {
  return {kernel_name(isa), isa, [isa](const OpInstance& op) { return refuse_dtype(op, isa); },
          [isa](const OpInstance& op) { return plan_product(op, isa); }};
}
ir::CpuKernel grouped_grad_panels(Isa isa) {
  return {kernel_name(isa), isa, [isa](const OpInstance& op) { return refuse_dtype(op, isa); },
          [isa](const OpInstance& op) { return plan_grad(op, isa); }};
}

}  // namespace rhea::ops
