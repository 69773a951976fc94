// The loop that runs a cluster's steps over tiles, and its kernel plan.
#include "rhea/ops/cluster/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "rhea/base/error.h"

#define RHEA_DECLARE_CLUSTER_PRIMITIVES(isa)                                                  \
  namespace rhea::isa {                                                                       \
  void cluster_load(DType dtype, const void* from, float* tile, int64_t n, const void* next); \
  void cluster_store(DType dtype, const float* tile, void* to, int64_t n);                    \
  void cluster_round(DType dtype, float* tile, int64_t n);                                    \
  void cluster_round_and_store(DType dtype, float* tile, void* to, int64_t n);                \
  void cluster_fill(float* tile, float value, int64_t n);                                     \
  }                                                                                           \
  namespace rhea::ops {                                                                       \
  static constexpr TilePrimitives isa##_primitives{                                           \
      rhea::isa::cluster_load, rhea::isa::cluster_store, rhea::isa::cluster_round,            \
      rhea::isa::cluster_round_and_store, rhea::isa::cluster_fill};                           \
  }

RHEA_DECLARE_CLUSTER_PRIMITIVES(isa_plain)
#if defined(__x86_64__)
RHEA_DECLARE_CLUSTER_PRIMITIVES(isa_avx2)
RHEA_DECLARE_CLUSTER_PRIMITIVES(isa_avx512)
RHEA_DECLARE_CLUSTER_PRIMITIVES(isa_avx512_bf16)
#endif

namespace rhea::ops {
namespace {

using Extent = ClusterPlan::Extent;

// The part of an extent (all elements, or a number per row) that a tile covers.
struct Stretch {
  Stretch() = default;
  // `row_elements`: of one row of dim 0.
  Stretch(int64_t first, int64_t count, int64_t row_elements)
      : begin(first), n(count), row(first / row_elements), column(first % row_elements) {}

  int64_t begin = 0, n = 0;
  int64_t row = 0, column = 0;  // of the first element
};

// Where the stretch begins in a buffer whose rows may lie apart.
int64_t offset_of(const Stretch& at, const ir::Buffer& buffer) {
  return at.row * buffer.row_stride + at.column;
}

void spread(const TileStep& step, const TilePrimitives& primitives, DType dtype,
            const ir::Buffer& buffer, const Stretch& at, float* tile) {
  const auto* data = buffer.as<const std::byte>();
  for (int64_t i = at.begin; i < at.begin + at.n;) {
    const int64_t from = i / step.repeat % step.period;
    const int64_t left = at.begin + at.n - i;
    int64_t run;
    if (step.repeat == 1) {  // a stretch of the operand
      run = std::min(left, step.period - from);
      const std::byte* stretch = data + from * dtype_size(dtype);
      primitives.load(dtype, stretch, tile + (i - at.begin), run, stretch);
    } else {  // one element, repeated
      run = std::min(left, step.repeat - i % step.repeat);
      float value;
      const std::byte* element = data + from * dtype_size(dtype);
      primitives.load(dtype, element, &value, 1, element);
      primitives.fill(tile + (i - at.begin), value, run);
    }
    i += run;
  }
}

class TileRunner {
 public:
  TileRunner(const ClusterPlan& plan, const ir::KernelArgs& args)
      : plan_(plan), args_(args), slots_(static_cast<float*>(args.scratch)) {
    for (const TileStep& step : plan_.once) {
      float* to = slot(step.to[0].place.index);
      if (step.kind == TileStep::Kind::fill)
        plan_.primitives->fill(to, step.value, plan_.tile);
      else
        plan_.primitives->load(step.to[0].dtype, args_.in[step.operand].data, to, plan_.width,
                               args_.in[step.operand].data);
    }
  }

  // Following tiles belong to this item: they add to its part of the sums over rows.
  void begin_item(int64_t item) {
    item_ = item;
    for (int sum = 0; sum < static_cast<int>(plan_.sum_results.size()); ++sum)
      std::fill_n(plan_.sums.partial<float>(args_.workspace, item, sum), plan_.sums.width, 0.0F);
  }

  // Elements [begin, begin + n) of the space; they lie in one row of every strided buffer.
  void run(int64_t begin, int64_t n) {
    whole_ = Stretch(begin, n, plan_.row);
    if (plan_.in_rows) numbers_ = Stretch(begin / plan_.width, n / plan_.width, row_of_numbers());
    for (const TileStep& step : plan_.steps) {
      run_step(step);
      const bool computes = step.kind == TileStep::Kind::op || step.kind == TileStep::Kind::rows;
      if (!computes) continue;  // loads, fills and spreads are no results, and rounded
      for (int j = 0; j < step.num_to; ++j) finish(step.to[static_cast<size_t>(j)]);
    }
  }

 private:
  // Of a vector, the only row has one number.
  int64_t row_of_numbers() const { return std::max<int64_t>(1, plan_.row / plan_.width); }
  float* slot(int index) const { return slots_ + index * plan_.slot; }
  const Stretch& stretch(bool numbers) const { return numbers ? numbers_ : whole_; }
  std::byte* memory(const ir::Buffer& buffer, DType dtype, bool numbers) const {
    return buffer.as<std::byte>() + offset_of(stretch(numbers), buffer) * dtype_size(dtype);
  }
  void* at(const TilePlace& place) const {
    switch (place.kind) {
      case TilePlace::Kind::slot:
        return slot(place.index);
      case TilePlace::Kind::operand:
        return memory(args_.in[place.index], DType::f32, place.numbers);
      case TilePlace::Kind::result:
        return memory(args_.out[place.index], DType::f32, place.numbers);
      case TilePlace::Kind::whole_operand:
        return args_.in[place.index].data;
      default:
        return plan_.sums.partial<float>(args_.workspace, item_, place.index);
    }
  }

  void run_step(const TileStep& step) const {
    const TileTarget& target = step.to[0];
    const Stretch& here = stretch(target.numbers);
    float* to = static_cast<float*>(at(target.place));
    switch (step.kind) {
      case TileStep::Kind::load: {
        const ir::Buffer& buffer = args_.in[step.operand];
        const Stretch next(here.begin + here.n, 0, target.numbers ? row_of_numbers() : plan_.row);
        plan_.primitives->load(
            target.dtype, memory(buffer, target.dtype, target.numbers), to, here.n,
            buffer.as<std::byte>() + offset_of(next, buffer) * dtype_size(target.dtype));
        break;
      }
      case TileStep::Kind::spread:
        spread(step, *plan_.primitives, target.dtype, args_.in[step.operand], here, to);
        break;
      case TileStep::Kind::spread_rows: {
        const auto* numbers = static_cast<const float*>(at(step.from[0]));
        for (int64_t r = 0; r < numbers_.n; ++r)
          plan_.primitives->fill(to + r * plan_.width, numbers[r], plan_.width);
        break;
      }
      case TileStep::Kind::fill:
        plan_.primitives->fill(to, step.value, here.n);
        break;
      case TileStep::Kind::op: {
        const float* from[3] = {};
        for (int i = 0; i < step.num_from; ++i)
          from[i] = static_cast<const float*>(at(step.from[static_cast<size_t>(i)]));
        step.tile(here.n, from, to, *step.attrs);
        break;
      }
      case TileStep::Kind::rows:
        run_rows(step);
        break;
    }
  }

  void run_rows(const TileStep& step) const {
    const void* in[4] = {};
    float* out[3] = {};
    for (int i = 0; i < step.num_from; ++i) in[i] = at(step.from[static_cast<size_t>(i)]);
    for (int j = 0; j < step.num_to; ++j)
      out[j] = static_cast<float*>(at(step.to[static_cast<size_t>(j)].place));
    step.rows.run({.first = numbers_.begin,
                   .rows = numbers_.n,
                   .width = plan_.width,
                   .in = in,
                   .out = out,
                   .state = step.rows.state.get()});
  }

  // Rounds what a later step reads to its type and stores what is a result of the cluster.
  void finish(const TileTarget& target) const {
    const bool is_stored = target.result >= 0 && target.place.kind == TilePlace::Kind::slot;
    float* tile = static_cast<float*>(at(target.place));
    const int64_t n = stretch(target.numbers).n;
    if (!is_stored) {
      if (target.read) plan_.primitives->round(target.dtype, tile, n);
      return;
    }
    std::byte* to = memory(args_.out[target.result], target.dtype, target.numbers);
    if (target.read)
      plan_.primitives->round_and_store(target.dtype, tile, to, n);
    else
      plan_.primitives->store(target.dtype, tile, to, n);
  }

  const ClusterPlan& plan_;
  const ir::KernelArgs& args_;
  float* slots_;
  int64_t item_ = 0;
  Stretch whole_, numbers_;
};

// Does this operand or result lie without gaps between its rows?
bool is_dense(const ClusterPlan& plan, Extent extent, const ir::Buffer& buffer) {
  if (extent == Extent::other) return true;
  return buffer.row_stride == (extent == Extent::whole ? plan.row : plan.row / plan.width);
}

void run_cluster(const ir::KernelArgs& args) {
  const auto& plan = *static_cast<const ClusterPlan*>(args.state);
  if (args.phase == 1) {
    for (size_t sum = 0; sum < plan.sum_results.size(); ++sum) {
      const int result = plan.sum_results[sum];
      if (result >= 0) plan.sums.join(args, static_cast<int>(sum), args.out[result].as<float>());
    }
    return;
  }
  bool dense = true;
  for (size_t i = 0; i < plan.operands.size(); ++i)
    dense &= is_dense(plan, plan.operands[i], args.in[i]);
  for (size_t j = 0; j < plan.results.size(); ++j)
    dense &= is_dense(plan, plan.results[j], args.out[j]);
  TileRunner runner(plan, args);
  for (int64_t item = args.begin; item < args.end; ++item) {
    runner.begin_item(item);
    const int64_t end = std::min((item + 1) * plan.item, plan.count);
    for (int64_t i = item * plan.item; i < end;) {
      int64_t n = std::min(end - i, plan.tile);
      if (!dense) n = std::min(n, plan.row - i % plan.row);
      runner.run(i, n);
      i += n;
    }
  }
}

// Operand i may be overwritten by result j if both lie alike and nothing reads it after j is made.
void allow_in_place(const ir::OpInstance& op, const ClusterPlan& plan, ir::KernelPlan& kernel) {
  std::vector<int> last_read(op.in.size(), -1), made(op.out.size(), -1);
  for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
    const TileStep& step = plan.steps[static_cast<size_t>(s)];
    if (step.operand >= 0) last_read[static_cast<size_t>(step.operand)] = s;
    for (int i = 0; i < step.num_from; ++i) {
      const TilePlace from = step.from[static_cast<size_t>(i)];
      if (from.kind == TilePlace::Kind::operand) last_read[static_cast<size_t>(from.index)] = s;
    }
    for (int j = 0; j < step.num_to; ++j) {
      const int result = step.to[static_cast<size_t>(j)].result;
      if (result >= 0) made[static_cast<size_t>(result)] = s;
    }
  }
  for (size_t j = 0; j < op.out.size(); ++j) {
    for (size_t i = 0; i < op.in.size(); ++i) {
      if (plan.operands[i] != Extent::other && plan.operands[i] == plan.results[j] &&
          dtype_size(op.in[i].dtype) == dtype_size(op.out[j].dtype) && last_read[i] <= made[j])
        kernel.in_place.emplace_back(static_cast<int>(i), static_cast<int>(j));
    }
  }
}

}  // namespace

const TilePrimitives& tile_primitives(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::avx512_bf16) return isa_avx512_bf16_primitives;
  if (isa >= Isa::avx512) return isa_avx512_primitives;
  if (isa >= Isa::avx2) return isa_avx2_primitives;
#endif
  static_cast<void>(isa);
  return isa_plain_primitives;
}

ir::KernelPlan plan_cluster(const ir::OpInstance& op, Isa isa) {
  const auto plan = compile_cluster(op, isa);
  ir::KernelPlan kernel;
  kernel.grid = {div_up(plan->count, plan->item)};
  if (!plan->sum_results.empty()) {
    const int num_sums = static_cast<int>(plan->sum_results.size());
    kernel.grid.push_back(plan->sums.column_items());
    kernel.workspace_bytes = plan->sums.workspace_bytes(num_sums, DType::f32);
  }
  kernel.scratch_bytes = plan->num_slots * plan->slot * static_cast<int64_t>(sizeof(float));
  kernel.run = run_cluster;
  allow_in_place(op, *plan, kernel);
  // The elements of a vector that is one row cannot lie apart.
  const bool strided = plan->row >= plan->width;
  for (size_t i = 0; strided && i < op.in.size() && i < 64; ++i) {
    if (plan->operands[i] != Extent::other) kernel.strided_in |= uint64_t{1} << i;
  }
  for (size_t j = 0; strided && j < op.out.size() && j < 64; ++j) {
    if (plan->results[j] != Extent::other) kernel.strided_out |= uint64_t{1} << j;
  }
  kernel.note =
      fmt::format("{} ops, {} tiles of {} elements{}", plan->steps.size(), plan->num_slots,
                  plan->tile, plan->in_rows ? fmt::format(" in rows of {}", plan->width) : "");
  kernel.state = plan;
  return kernel;
}

}  // namespace rhea::ops
