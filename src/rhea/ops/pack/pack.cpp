// Row of pack: the copy of a weight in the layout that matrix products read.
#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/ops/dot_general/panel_kernels.h"
#include "rhea/ops/grouped/grouped.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/pack/layout.h"
#include "rhea/ops/per_isa.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::Attrs;
using ir::KernelArgs;
using ir::KernelPlan;
using ir::Layout;
using ir::OpInstance;
using ir::Sample;
using ir::Type;

std::vector<Type> infer(std::span<const Type> in, const Attrs& attrs) {
  if (in.size() != 1) throw Error("takes 1 operand, got {}", in.size());
  const auto layout = static_cast<Layout>(attrs.i64("layout"));
  if (layout != Layout::panels_nk && layout != Layout::panels_kn)
    throw Error("attribute layout must be {} (panels_nk) or {} (panels_kn), got {}",
                static_cast<int>(Layout::panels_nk), static_cast<int>(Layout::panels_kn),
                attrs.i64("layout"));
  Type result = in[0];
  if ((result.rank() != 2 && !can_pack_groups(result, layout)) ||
      result.layout != Layout::row_major || !is_float(result.dtype) || result.dtype == DType::f64)
    throw Error(
        "packs row-major matrices of f32, bf16 or f16, or groups of them that keep apart in "
        "panels, "
        "got {}",
        to_string(result));
  result.layout = layout;
  return {result};
}

// One item is one panel; its padding is written as zeros.
struct State {
  PackPanelFn pack = nullptr;
  int64_t k = 0, n = 0, depth = 0, element = 4;
  bool nk = false;  // the operand is stored [n,k]
  int64_t ld = 0;   // of rows that lie inside groups
};

void run(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  const int64_t ld = s.ld != 0 ? s.ld : args.in[0].row_stride;
  for (int64_t item = args.begin; item < args.end; ++item) {
    const int64_t n = item * kPanel;
    const char* src = args.in[0].as<char>() + (s.nk ? n * ld : n) * s.element;
    s.pack(src, ld, std::min(kPanel, s.n - n), s.k, s.depth,
           args.out[0].as<char>() + n * s.depth * s.element);
  }
}

KernelPlan plan(const OpInstance& node, Isa isa) {
  auto state = std::make_shared<State>();
  const Type w = packed_matrix(node.in[0]);
  state->nk = node.out[0].layout == Layout::panels_nk;
  state->n = w.shape[state->nk ? 0 : 1];
  state->k = w.shape[state->nk ? 1 : 0];
  state->depth = panel_depth(state->k, w.dtype);
  state->ld = node.in[0].rank() == 3 ? w.shape[1] : 0;
  state->element = dtype_size(w.dtype);
  const PanelKernels& kernels = panel_kernels(isa);
  state->pack = (state->nk ? kernels.cached.nk : kernels.cached.kn)[state->element == 4 ? 0 : 1];
  KernelPlan plan;
  plan.grid = {div_up(state->n, kPanel)};
  plan.run = run;
  plan.strided_in = state->ld == 0 ? 1 : 0;
  plan.state = std::move(state);
  return plan;
}

std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const DType t : {DType::f32, DType::bf16, DType::f16}) {
    for (const Layout layout : {Layout::panels_nk, Layout::panels_kn}) {
      for (const ir::Shape& shape :
           {ir::Shape{131, 77}, ir::Shape{128, 64}, ir::Shape{3, 200}, ir::Shape{0, 5}}) {
        all.push_back({std::string(dtype_name(t)) + "_" + std::to_string(shape[0]) + "x" +
                           std::to_string(shape[1]) + (layout == Layout::panels_nk ? "_nk" : "_kn"),
                       {{Type{t, shape}}},
                       {{"layout", static_cast<int64_t>(layout)}},
                       1,
                       false});  // no gradient: passes pack after differentiating
      }
    }
  }
  for (const DType t : {DType::f32, DType::bf16}) {
    for (const Layout layout : {Layout::panels_nk, Layout::panels_kn})
      all.push_back(
          {std::string(dtype_name(t)) + "_groups" + (layout == Layout::panels_nk ? "_nk" : "_kn"),
           {{Type{t, {3, 64, 70}}}},
           {{"layout", static_cast<int64_t>(layout)}},
           1,
           false});
  }
  return all;
}

}  // namespace

const OpDef kPack{
    .name = "pack",
    .attrs = {{"layout", AttrKind::i64, {}}},
    .infer = infer,
    .shard =
        [](const OpInstance& op) {
          return std::string(op.in[0].rank() == 3 ? "e!nk->e!nk" : "nk->nk");
        },
    .cpu = kernels_per_isa("panels", plan),
    .cost =
        [](const OpInstance& node) {
          return ir::Cost{0, static_cast<double>(byte_size(node.in[0]) + byte_size(node.out[0]))};
        },
    .samples = samples,
    .reference = [](const ir::ReferenceArgs& args) { args.out[0] = args.in[0]; },
};

Value pack(Value w, ir::Layout layout, Where where) {
  return w.graph->add1(kPack, {w}, {{"layout", static_cast<int64_t>(layout)}}, where);
}

}  // namespace rhea::ops
