// From a cluster's body to steps over tiles, and the loop that runs them.
#include "rhea/ops/cluster/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/ops/cluster/body.h"
#include "rhea/ops/cluster/cluster.h"

#define RHEA_DECLARE_CLUSTER_PRIMITIVES(isa)                                       \
  namespace rhea::isa {                                                            \
  void cluster_load(DType dtype, const void* from, float* tile, int64_t n);        \
  void cluster_store(DType dtype, const float* tile, void* to, int64_t n);         \
  void cluster_round(DType dtype, float* tile, int64_t n);                         \
  void cluster_fill(float* tile, float value, int64_t n);                          \
  }                                                                                \
  namespace rhea::ops {                                                            \
  static constexpr TilePrimitives isa##_primitives{                                \
      rhea::isa::cluster_load, rhea::isa::cluster_store, rhea::isa::cluster_round, \
      rhea::isa::cluster_fill};                                                    \
  }

RHEA_DECLARE_CLUSTER_PRIMITIVES(isa_plain)
#if defined(__x86_64__)
RHEA_DECLARE_CLUSTER_PRIMITIVES(isa_avx2)
RHEA_DECLARE_CLUSTER_PRIMITIVES(isa_avx512)
#endif

namespace rhea::ops {
namespace {

// Offset of element i of the space in a buffer whose rows may lie apart.
int64_t offset_of(const ClusterPlan& plan, const ir::Buffer& buffer, int64_t i) {
  return i / plan.row * buffer.row_stride + i % plan.row;
}

void spread(const ClusterPlan& plan, const TileStep& step, const ir::Buffer& buffer, int64_t begin,
            int64_t n, float* tile) {
  const DType dtype = plan.operand_dtypes[static_cast<size_t>(step.operand)];
  const auto* data = buffer.as<const std::byte>();
  for (int64_t i = begin; i < begin + n;) {
    const int64_t at = i / step.repeat % step.period;
    const int64_t left = begin + n - i;
    int64_t run;
    if (step.repeat == 1) {  // a stretch of the operand
      run = std::min(left, step.period - at);
      plan.primitives->load(dtype, data + at * dtype_size(dtype), tile + (i - begin), run);
    } else {  // one element, repeated
      run = std::min(left, step.repeat - i % step.repeat);
      float value;
      plan.primitives->load(dtype, data + at * dtype_size(dtype), &value, 1);
      plan.primitives->fill(tile + (i - begin), value, run);
    }
    i += run;
  }
}

class TileRunner {
 public:
  TileRunner(const ClusterPlan& plan, const ir::KernelArgs& args)
      : plan_(plan), args_(args), slots_(static_cast<float*>(args.scratch)) {
    for (const TileStep& step : plan_.once)
      plan_.primitives->fill(slot(step.to.index), step.value, ClusterPlan::kTile);
  }

  // Elements [begin, begin + n) of the space; they lie in one row of every strided buffer.
  void run(int64_t begin, int64_t n) {
    begin_ = begin;
    for (const TileStep& step : plan_.steps) {
      float* to = writable(step.to);
      switch (step.kind) {
        case TileStep::Kind::load: {
          const ir::Buffer& buffer = args_.in[step.operand];
          plan_.primitives->load(step.dtype,
                                 buffer.as<const std::byte>() +
                                     offset_of(plan_, buffer, begin) * dtype_size(step.dtype),
                                 to, n);
          break;
        }
        case TileStep::Kind::spread:
          spread(plan_, step, args_.in[step.operand], begin, n, to);
          break;
        case TileStep::Kind::fill:
          plan_.primitives->fill(to, step.value, n);
          break;
        case TileStep::Kind::op: {
          const float* from[3] = {};
          for (int i = 0; i < step.num_from; ++i)
            from[i] = readable(step.from[static_cast<size_t>(i)]);
          step.tile(n, from, to, *step.attrs);
          plan_.primitives->round(step.dtype, to, n);
          break;
        }
      }
      if (step.result >= 0 && step.to.kind != TileSource::Kind::result)
        plan_.primitives->store(step.dtype, to, memory(args_.out[step.result], step.dtype), n);
    }
  }

 private:
  float* slot(int index) const { return slots_ + index * ClusterPlan::kTile; }
  std::byte* memory(const ir::Buffer& buffer, DType dtype) const {
    return buffer.as<std::byte>() + offset_of(plan_, buffer, begin_) * dtype_size(dtype);
  }
  float* writable(TileSource to) const {
    if (to.kind == TileSource::Kind::slot) return slot(to.index);
    return reinterpret_cast<float*>(memory(args_.out[to.index], DType::f32));
  }
  const float* readable(TileSource from) const {
    if (from.kind == TileSource::Kind::operand)
      return reinterpret_cast<const float*>(memory(args_.in[from.index], DType::f32));
    return writable(from);
  }

  const ClusterPlan& plan_;
  const ir::KernelArgs& args_;
  float* slots_;
  int64_t begin_ = 0;
};

void run_cluster(const ir::KernelArgs& args) {
  const auto& plan = *static_cast<const ClusterPlan*>(args.state);
  bool contiguous = true;
  for (size_t i = 0; i < plan.whole.size(); ++i)
    contiguous &= !plan.whole[i] || args.in[i].row_stride == plan.row;
  for (int i = 0; i < plan.num_results; ++i) contiguous &= args.out[i].row_stride == plan.row;
  TileRunner runner(plan, args);
  const int64_t end = std::min(args.end * ClusterPlan::kItem, plan.count);
  for (int64_t i = args.begin * ClusterPlan::kItem; i < end;) {
    int64_t n = std::min(end - i, ClusterPlan::kTile);
    if (!contiguous) n = std::min(n, plan.row - i % plan.row);
    runner.run(i, n);
    i += n;
  }
}

// Slots are handed out again as soon as the value in them is read for the last time.
class SlotPool {
 public:
  int take() {
    if (free_.empty()) return size_++;
    const int slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give(int slot) { free_.push_back(slot); }
  int size() const { return size_; }

 private:
  std::vector<int> free_;
  int size_ = 0;
};

ir::TileFn tile_for(const ir::OpDef& op, Isa isa) {
  for (auto i = static_cast<size_t>(isa) + 1; i-- > 0;) {
    if (op.tile[i] != nullptr) return op.tile[i];
  }
  return nullptr;
}

class ClusterCompiler {
 public:
  ClusterCompiler(const ir::OpInstance& op, Isa isa) : op_(op), isa_(isa) {}

  std::shared_ptr<ClusterPlan> run() {
    std::vector<ir::Value> operands;
    for (const ir::Type& type : op_.in)
      operands.push_back(graph_.input(std::to_string(operands.size()), type));
    const auto results = inline_cluster(graph_, operands, op_.attrs->str("body"));
    const auto& nodes = graph_.nodes();
    result_.assign(nodes.size(), -1);
    last_use_.assign(nodes.size(), -1);
    where_.resize(nodes.size());
    for (size_t j = 0; j < results.size(); ++j)
      result_[static_cast<size_t>(results[j].id.node)] = static_cast<int>(j);
    for (size_t n = 0; n < nodes.size(); ++n) {
      for (const ir::ValueId id : nodes[n].inputs)
        last_use_[static_cast<size_t>(id.node)] = static_cast<int>(n);
    }

    plan_ = std::make_shared<ClusterPlan>();
    plan_->primitives = &tile_primitives(isa_);
    plan_->count = ir::num_elements(op_.out[0].shape);
    plan_->row =
        op_.out[0].shape.empty() || plan_->count == 0 ? 1 : plan_->count / op_.out[0].shape[0];
    plan_->num_results = static_cast<int>(op_.out.size());
    plan_->attrs.reserve(nodes.size());
    for (const ir::Type& type : op_.in) {
      plan_->operand_dtypes.push_back(type.dtype);
      plan_->whole.push_back(type.shape == op_.out[0].shape);
    }
    // Constants first: their slots are filled once per call and never handed out again.
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].op == &ir::kConstant && nodes[n].outputs[0].shape == op_.out[0].shape)
        add_constant(n);
    }
    for (size_t n = 0; n < nodes.size(); ++n) add(n);
    plan_->num_slots = slots_.size();
    return plan_;
  }

 private:
  void add_constant(size_t n) {
    TileStep step{.kind = TileStep::Kind::fill};
    step.dtype = graph_.nodes()[n].outputs[0].dtype;
    step.to = {TileSource::Kind::slot, slots_.take()};
    // Rounded to the constant's type, as its buffer would be.
    double rounded = 0;
    store_from_f64(&rounded, step.dtype, 0, graph_.nodes()[n].attrs.f64("value"));
    step.value = static_cast<float>(load_as_f64(&rounded, step.dtype, 0));
    where_[n] = step.to;
    plan_->once.push_back(step);
  }

  void add(size_t n) {
    const ir::Node& node = graph_.nodes()[n];
    const int now = static_cast<int>(n);
    TileStep step;
    step.dtype = node.outputs[0].dtype;
    step.result = result_[n];
    if (node.op == &ir::kConstant) return;
    if (node.op == &ir::kInput) {
      if (!plan_->whole[n]) return;  // read by its broadcasts
      // f32 is read where it lies.
      if (step.dtype == DType::f32) {
        where_[n] = {TileSource::Kind::operand, static_cast<int>(n)};
        return;
      }
      step.kind = TileStep::Kind::load;
      step.operand = static_cast<int>(n);
    } else if (node.op->name == "broadcast_in_dim") {
      const auto operand = static_cast<size_t>(node.inputs[0].node);
      const auto spread = spread_of(op_.in[operand], node);
      step.kind = TileStep::Kind::spread;
      step.operand = static_cast<int>(operand);
      step.repeat = spread->repeat;
      step.period = spread->period;
    } else {
      step.tile = tile_for(*node.op, isa_);
      RHEA_CHECK(step.tile != nullptr, "{} has no tile function", node.op->name);
      plan_->attrs.push_back(node.attrs);
      step.attrs = &plan_->attrs.back();
      for (const ir::ValueId id : node.inputs) {
        step.from[static_cast<size_t>(step.num_from++)] = where_[static_cast<size_t>(id.node)];
      }
      release(node, now);
    }
    // f32 results are made where they stay.
    step.to = step.result >= 0 && step.dtype == DType::f32
                  ? TileSource{TileSource::Kind::result, step.result}
                  : TileSource{TileSource::Kind::slot, slots_.take()};
    where_[n] = step.to;
    plan_->steps.push_back(step);
    if (last_use_[n] < now && step.to.kind == TileSource::Kind::slot) slots_.give(step.to.index);
  }

  // Slots of operands that this node reads last; it may write over them.
  void release(const ir::Node& node, int now) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto from = static_cast<size_t>(node.inputs[i].node);
      const bool repeated =
          std::find(node.inputs.begin(), node.inputs.begin() + static_cast<ptrdiff_t>(i),
                    node.inputs[i]) != node.inputs.begin() + static_cast<ptrdiff_t>(i);
      if (repeated || last_use_[from] != now || graph_.nodes()[from].op == &ir::kConstant) continue;
      if (where_[from].kind == TileSource::Kind::slot) slots_.give(where_[from].index);
    }
  }

  const ir::OpInstance& op_;
  Isa isa_;
  ir::Graph graph_;
  std::shared_ptr<ClusterPlan> plan_;
  SlotPool slots_;
  std::vector<int> result_, last_use_;  // by node of the body
  std::vector<TileSource> where_;
};

// Operand i may be overwritten by result j if nothing reads it after j is made.
void allow_in_place(const ir::OpInstance& op, const ClusterPlan& plan, ir::KernelPlan& kernel) {
  std::vector<int> last_read(op.in.size(), -1), made(op.out.size(), -1);
  for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
    const TileStep& step = plan.steps[static_cast<size_t>(s)];
    if (step.operand >= 0) last_read[static_cast<size_t>(step.operand)] = s;
    for (int i = 0; i < step.num_from; ++i) {
      const TileSource from = step.from[static_cast<size_t>(i)];
      if (from.kind == TileSource::Kind::operand) last_read[static_cast<size_t>(from.index)] = s;
    }
    if (step.result >= 0) made[static_cast<size_t>(step.result)] = s;
  }
  for (size_t j = 0; j < op.out.size(); ++j) {
    for (size_t i = 0; i < op.in.size(); ++i) {
      if (plan.whole[i] && dtype_size(op.in[i].dtype) == dtype_size(op.out[j].dtype) &&
          last_read[i] <= made[j])
        kernel.in_place.emplace_back(static_cast<int>(i), static_cast<int>(j));
    }
  }
}

}  // namespace

const TilePrimitives& tile_primitives(Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::avx512) return isa_avx512_primitives;
  if (isa >= Isa::avx2) return isa_avx2_primitives;
#endif
  static_cast<void>(isa);
  return isa_plain_primitives;
}

ir::KernelPlan plan_cluster(const ir::OpInstance& op, Isa isa) {
  const auto plan = ClusterCompiler(op, isa).run();
  ir::KernelPlan kernel;
  kernel.grid = {div_up(plan->count, ClusterPlan::kItem)};
  kernel.scratch_bytes = plan->num_slots * ClusterPlan::kTile * static_cast<int64_t>(sizeof(float));
  kernel.run = run_cluster;
  allow_in_place(op, *plan, kernel);
  for (size_t i = 0; i < op.in.size() && i < 64; ++i) {
    if (plan->whole[i]) kernel.strided_in |= uint64_t{1} << i;
  }
  kernel.strided_out = ~uint64_t{0};
  kernel.note = fmt::format("{} ops, {} tiles of {} elements", plan->steps.size(), plan->num_slots,
                            ClusterPlan::kTile);
  kernel.state = plan;
  return kernel;
}

}  // namespace rhea::ops
