// Row of adam_pack: adam on a matrix that also writes the copies of the new weight which the next
// step's products read.
#include <fmt/core.h>

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/ops/dot_general/panel_kernels.h"
#include "rhea/ops/grouped/grouped.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/optimizer/adam.h"
#include "rhea/ops/pack/layout.h"
#include "rhea/ops/per_isa.h"
#include "rhea/ops/row.h"

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

std::vector<ir::AttrSpec> attr_specs() {
  auto specs = adam_attr_specs();
  specs.push_back({"copy_dtype", AttrKind::dtype, {}});
  specs.push_back({"copies", AttrKind::list, {}});
  return specs;
}

std::vector<Type> infer(std::span<const Type> in, const Attrs& attrs) {
  check_adam_operands(in, attrs);
  const DType dtype = attrs.dtype("copy_dtype");
  if ((in[0].rank() != 2 && in[0].rank() != 3) || in[0].dtype != DType::f32 ||
      (dtype != DType::f32 && dtype != DType::bf16))
    throw Error(
        "needs an f32 matrix (or groups of them) with copies in f32 or bf16, got {} with copies in "
        "{}",
        to_string(in[0]), dtype_name(dtype));
  std::vector<Type> results = {in[0], in[2], in[3]};
  for (const int64_t layout : attrs.list("copies")) {
    if (layout < 0 || layout > static_cast<int64_t>(Layout::panels_kn))
      throw Error("attribute copies lists layouts (0 row_major, 1 panels_nk, 2 panels_kn), got {}",
                  layout);
    const Type copy{dtype, in[0].shape, static_cast<Layout>(layout)};
    if (copy.rank() == 3 && copy.layout != Layout::row_major && !can_pack_groups(copy, copy.layout))
      throw Error("groups of {} do not keep apart in panels", to_string(copy));
    results.push_back(copy);
  }
  return results;
}

std::vector<Value> decompose(ir::Graph& graph, std::span<const Value> inputs, const Attrs& attrs) {
  Attrs adam_only;
  for (const auto& spec : adam_attr_specs()) adam_only.set(spec.name, *attrs.find(spec.name));
  auto results = graph.add(kAdam, inputs, adam_only);
  const Value copy = convert(results[0], attrs.dtype("copy_dtype"));
  for (const int64_t layout : attrs.list("copies"))
    results.push_back(layout == 0 ? copy : pack(copy, static_cast<Layout>(layout)));
  return results;
}

// One item is a strip of 64 rows: updated row by row (four long streams run at memory speed, square
// blocks at 60 % of it), rounded into a tile in L2, and written from there in every layout.
constexpr int64_t kStrip = kPanel;

struct State {
  AdamAttrs attrs;
  AdamFn adam = nullptr;
  RoundFn round = nullptr;  // null: copies are f32
  StreamFn stream = nullptr;
  const PanelKernels* panels = nullptr;
  int64_t rows = 0, columns = 0, tile_row = 0;
  int64_t element = 4;  // bytes of a copy's element
  std::vector<Layout> copies;
};

void write_copy(const State& s, Layout layout, const char* tile, int64_t tile_row, int64_t first,
                int64_t rows, const ir::Buffer& out) {
  const int index = s.element == 4 ? 0 : 1;
  const DType dtype = s.element == 4 ? DType::f32 : DType::bf16;
  if (layout == Layout::row_major) {
    for (int64_t r = 0; r < rows; ++r)
      s.stream(tile + r * tile_row * s.element,
               out.as<char>() + (first + r) * s.columns * s.element, s.columns * s.element);
    return;
  }
  if (layout == Layout::panels_nk) {
    const int64_t depth = panel_depth(s.columns, dtype);
    s.panels->streamed.nk[index](tile, tile_row, rows, s.columns, depth,
                                 out.as<char>() + first * depth * s.element);
    return;
  }
  // The strip is a piece of the reduction of every panel; the last one also writes the padding.
  const int64_t depth = panel_depth(s.rows, dtype);
  const int64_t piece = std::min(kStrip, depth - first);
  for (int64_t c = 0; c < s.columns; c += kPanel)
    s.panels->streamed.kn[index](tile + c * s.element, tile_row, std::min(kPanel, s.columns - c),
                                 rows, piece,
                                 out.as<char>() + (c * depth + first * kPanel) * s.element);
}

void run(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  const AdamScalars scalars = adam_scalars(s.attrs, args);
  const AdamPointers at{args.in[0].data,  args.in[1].data,  args.in[2].data, args.in[3].data,
                        args.out[0].data, args.out[1].data, args.out[2].data};
  for (int64_t item = args.begin; item < args.end; ++item) {
    const int64_t first = item * kStrip, rows = std::min(kStrip, s.rows - first);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t begin = (first + r) * s.columns;
      s.adam(at, begin, s.columns, scalars);
      if (s.round != nullptr)
        s.round(args.out[0].as<float>() + begin,
                static_cast<uint16_t*>(args.scratch) + r * s.tile_row, s.columns);
    }
    const char* tile = s.round != nullptr ? static_cast<const char*>(args.scratch)
                                          : args.out[0].as<char>() + first * s.columns * 4;
    for (size_t i = 0; i < s.copies.size(); ++i)
      write_copy(s, s.copies[i], tile, s.tile_row, first, rows, args.out[3 + i]);
  }
}

KernelPlan plan(const OpInstance& node, Isa isa) {
  auto state = std::make_shared<State>();
  const bool rounds = node.attrs->dtype("copy_dtype") == DType::bf16;
  state->attrs = adam_attrs(*node.attrs);
  const OptimizerKernels& kernels = optimizer_kernels(isa);
  state->adam =
      kernels.adam[0][optimizer_dtype(node.in[1].dtype)][optimizer_dtype(node.in[2].dtype)];
  state->stream = kernels.stream;
  state->panels = &panel_kernels(isa);
  const Type matrix = packed_matrix(node.in[0]);
  state->rows = matrix.shape[0];
  state->columns = matrix.shape[1];
  state->tile_row = state->columns;
  KernelPlan plan;
  if (rounds) {
    state->round = kernels.round_bf16;
    state->element = 2;
    // A cache line more than a row: rows a power of two apart would meet in few sets of the cache.
    state->tile_row = round_up(state->columns, 32) + 32;
    plan.scratch_bytes = kStrip * state->tile_row * 2;
  }
  for (const int64_t layout : node.attrs->list("copies"))
    state->copies.push_back(static_cast<Layout>(layout));
  plan.grid = {div_up(state->rows, kStrip)};
  plan.state = std::move(state);
  plan.run = run;
  plan.in_place = {{0, 0}, {2, 1}, {3, 2}};
  plan.note = "strips of 64 rows";
  return plan;
}

std::vector<Sample> samples() {
  std::vector<Sample> all;
  const std::vector<int64_t> every = {0, 1, 2}, none;
  for (const DType copy : {DType::f32, DType::bf16}) {
    for (const ir::Shape& shape :
         {ir::Shape{128, 64}, ir::Shape{131, 77}, ir::Shape{3, 200}, ir::Shape{0, 5}}) {
      Sample s = adam_sample(shape, DType::f32, DType::f32, copy);
      s.name = fmt::format("{}_{}x{}", dtype_name(copy), shape[0], shape[1]);
      s.attrs.set("copy_dtype", copy);
      s.attrs.set("copies", shape[0] == 3 ? none : every);
      all.push_back(std::move(s));
    }
  }
  Sample groups = adam_sample({3, 64, 70}, DType::f32, DType::f32, DType::bf16);
  groups.name = "groups";
  groups.attrs.set("copy_dtype", DType::bf16);
  groups.attrs.set("copies", every);
  all.push_back(std::move(groups));
  return all;
}

}  // namespace

const OpDef kAdamPack{
    .name = "adam_pack",
    .attrs = attr_specs(),
    .infer = infer,
    .decompose = decompose,
    .shard =
        [](const OpInstance& node) {
          std::string text = adam_shard(node);
          const std::string dims = shard_letters(node.in[0].rank());
          for (size_t i = 3; i < node.out.size(); ++i) text += "," + dims;
          // Groups stay whole, so that they keep apart in panels.
          if (node.in[0].rank() == 3)
            for (size_t i = text.find('b'); i != std::string::npos; i = text.find('b', i + 2))
              text.insert(i, 1, '!');
          return text;
        },
    .cpu = kernels_per_isa("strips", plan, {Isa::avx512_bf16, Isa::avx512, Isa::avx2, Isa::plain}),
    .cost = adam_cost,
    .samples = samples,
};

}  // namespace rhea::ops
