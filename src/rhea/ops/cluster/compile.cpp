// From a cluster's body to steps over tiles.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "rhea/base/error.h"
#include "rhea/ops/cluster/body.h"
#include "rhea/ops/cluster/space.h"
#include "rhea/ops/cluster/tiles.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

using Extent = ClusterPlan::Extent;
using Kind = TilePlace::Kind;

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
      operands.push_back(body_.input(std::to_string(operands.size()), type));
    const auto results = inline_cluster(body_, operands, op_.attrs->str("body"));
    std::string why;
    const auto space = space_of(body_, body_nodes(body_), why);
    RHEA_CHECK(space.has_value(), "cluster: {}", why);
    space_ = *space;

    plan_ = std::make_shared<ClusterPlan>();
    plan_->primitives = &tile_primitives(isa_);
    set_tiles();
    plan_->attrs.reserve(body_.nodes().size());
    for (const ir::Type& type : op_.in) plan_->operand_dtypes.push_back(type.dtype);
    plan_->operands.assign(op_.in.size(), Extent::other);
    for (size_t j = 0; j < results.size(); ++j) {
      result_[results[j].id] = static_cast<int>(j);
      plan_->results.push_back(extent(results[j].shape()));
    }
    for (size_t n = 0; n < body_.nodes().size(); ++n) {
      for (const ir::ValueId id : body_.nodes()[n].inputs) last_use_[id] = static_cast<int>(n);
    }
    // What is the same for all tiles first: these slots are never handed out again.
    for (size_t n = 0; n < body_.nodes().size(); ++n) add_once(n);
    for (int n = 0; n < static_cast<int>(body_.nodes().size()); ++n) add(n);
    for (const int32_t i : read_elsewhere_) plan_->operands[static_cast<size_t>(i)] = Extent::other;
    plan_->num_slots = slots_.size();
    return plan_;
  }

 private:
  const ir::Node& node(int n) const { return body_.nodes()[static_cast<size_t>(n)]; }
  Extent extent(const ir::Shape& shape) const {
    if (shape == space_.shape) return Extent::whole;
    return space_.is_numbers(shape) ? Extent::numbers : Extent::other;
  }

  void set_tiles() {
    plan_->count = ir::num_elements(space_.shape);
    plan_->row = space_.shape.empty() || plan_->count == 0 ? 1 : plan_->count / space_.shape[0];
    plan_->in_rows = space_.rows;
    plan_->width = space_.width();
    if (!space_.rows) return;
    const int64_t width = plan_->width;
    plan_->tile = std::max<int64_t>(1, ClusterPlan::kRowsTile / width) * width;
    plan_->item = std::max<int64_t>(1, ClusterPlan::kItem / plan_->tile) * plan_->tile;
    plan_->slot = round_up(plan_->tile, 16);
  }

  void add_once(size_t n) {
    const ir::Node& node = body_.nodes()[n];
    if (node.op == &ir::kConstant) {
      TileStep step{.kind = TileStep::Kind::fill};
      step.to[0] = {.place = {Kind::slot, slots_.take()}, .dtype = node.outputs[0].dtype};
      // Rounded to the constant's type, as its buffer would be.
      double rounded = 0;
      store_from_f64(&rounded, step.to[0].dtype, 0, node.attrs.f64("value"));
      step.value = static_cast<float>(load_as_f64(&rounded, step.to[0].dtype, 0));
      made_[{static_cast<int32_t>(n), 0}] = step.to[0].place;
      plan_->once.push_back(step);
      return;
    }
    if (part_of(body_, node) != Part::rows) return;
    const ir::RowPlan rows = row_plan(body_, node, isa_);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (role_of_operand(rows.roles, i) == 'v') add_vector(node.inputs[i]);
    }
  }

  void add_vector(ir::ValueId id) {
    const ir::Type& type = body_.type(id);
    if (type.dtype == DType::f32 || vectors_.contains(id)) return;
    TileStep step{.kind = TileStep::Kind::load};
    step.operand = id.node;
    step.to[0] = {.place = {Kind::slot, slots_.take()}, .dtype = type.dtype};
    vectors_[id] = step.to[0].place;
    plan_->once.push_back(step);
  }

  void add(int n) {
    const Part part = part_of(body_, node(n));
    if (part == Part::none || node(n).op == &ir::kConstant) return;
    TileStep step;
    if (part == Part::spread) {
      spread(n, step);
    } else {
      step.kind = part == Part::rows ? TileStep::Kind::rows : TileStep::Kind::op;
      if (part == Part::rows) step.rows = row_plan(body_, node(n), isa_);
      for (size_t i = 0; i < node(n).inputs.size(); ++i)
        step.from[static_cast<size_t>(step.num_from++)] = operand(n, i, step.rows.roles);
      if (part == Part::element) {
        step.tile = tile_for(*node(n).op, isa_);
        RHEA_CHECK(step.tile != nullptr, "{} has no tile function", node(n).op->name);
        plan_->attrs.push_back(node(n).attrs);
        step.attrs = &plan_->attrs.back();
      }
    }
    // A tile function may write over what it reads; other results get a place of their own.
    if (part == Part::element) release(n);
    step.num_to = static_cast<int>(node(n).outputs.size());
    for (int j = 0; j < step.num_to; ++j)
      step.to[static_cast<size_t>(j)] = target({n, j}, step.rows.roles);
    if (part != Part::element) release(n);
    plan_->steps.push_back(step);
    for (int j = 0; j < step.num_to; ++j) {
      const TileTarget& made = step.to[static_cast<size_t>(j)];
      if (made.place.kind == Kind::slot && !made.read) slots_.give(made.place.index);
    }
  }

  void spread(int n, TileStep& step) {
    const ir::ValueId from = node(n).inputs[0];
    if (body_.node(from).op != &ir::kInput) {
      step.kind = TileStep::Kind::spread_rows;
      step.from[0] = made_.at(from);
      step.num_from = 1;
      return;
    }
    const auto spread = spread_of(body_.type(from), node(n));
    step.kind = TileStep::Kind::spread;
    step.operand = from.node;
    step.repeat = spread->repeat;
    step.period = spread->period;
    read_elsewhere_.insert(from.node);
  }

  // Where operand i of node n lies when the node runs.
  TilePlace operand(int n, size_t i, std::string_view roles) {
    const ir::ValueId id = node(n).inputs[i];
    if (body_.node(id).op != &ir::kInput) return made_.at(id);
    const char role = roles.empty() ? 'e' : role_of_operand(roles, i);
    if (role == 'v' && vectors_.contains(id)) return vectors_.at(id);
    if (role == 'v' || role == 'm') {
      read_elsewhere_.insert(id.node);
      return {Kind::whole_operand, id.node};
    }
    if (const auto found = made_.find(id); found != made_.end()) return found->second;
    const ir::Type& type = body_.type(id);
    const bool numbers = extent(type.shape) == Extent::numbers;
    plan_->operands[static_cast<size_t>(id.node)] = extent(type.shape);
    // f32 is read where it lies.
    if (type.dtype == DType::f32) return made_[id] = {Kind::operand, id.node, numbers};
    TileStep load{.kind = TileStep::Kind::load};
    load.operand = id.node;
    load.to[0] = {.place = {Kind::slot, slots_.take()}, .dtype = type.dtype, .numbers = numbers};
    plan_->steps.push_back(load);
    return made_[id] = load.to[0].place;
  }

  TileTarget target(ir::ValueId id, std::string_view roles) {
    const ir::Type& type = body_.type(id);
    TileTarget target{.dtype = type.dtype, .read = last_use_.contains(id)};
    const auto result = result_.find(id);
    if (result != result_.end()) target.result = result->second;
    if (!roles.empty() && role_of_result(roles, static_cast<size_t>(id.output)) == 's') {
      target.place = {Kind::sum, static_cast<int>(plan_->sum_results.size())};
      plan_->sum_results.push_back(target.result);
      if (target.result >= 0) plan_->results[static_cast<size_t>(target.result)] = Extent::other;
      plan_->sums = row_sums(space_.shape);
      plan_->item = plan_->sums.block_tokens * plan_->row;
      return target;
    }
    target.numbers = extent(type.shape) == Extent::numbers;
    // f32 results are made where they stay.
    target.place = target.result >= 0 && type.dtype == DType::f32
                       ? TilePlace{Kind::result, target.result, target.numbers}
                       : TilePlace{Kind::slot, slots_.take()};
    made_[id] = target.place;
    return target;
  }

  // Slots of operands that node n reads last; its result may take them over.
  void release(int n) {
    const auto& inputs = node(n).inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool repeated = std::find(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(i),
                                      inputs[i]) != inputs.begin() + static_cast<ptrdiff_t>(i);
      const auto made = made_.find(inputs[i]);
      if (repeated || made == made_.end() || last_use_.at(inputs[i]) != n ||
          body_.node(inputs[i]).op == &ir::kConstant)
        continue;
      if (made->second.kind == Kind::slot) slots_.give(made->second.index);
    }
  }

  const ir::OpInstance& op_;
  Isa isa_;
  ir::Graph body_;
  Space space_;
  std::shared_ptr<ClusterPlan> plan_;
  SlotPool slots_;
  std::map<ir::ValueId, int> result_, last_use_;
  std::map<ir::ValueId, TilePlace> made_;     // values as the tile's elements or numbers
  std::map<ir::ValueId, TilePlace> vectors_;  // operands of role v that are not f32
  std::set<int32_t> read_elsewhere_;          // operands read at other places than the tile's
};

}  // namespace

std::shared_ptr<ClusterPlan> compile_cluster(const ir::OpInstance& op, Isa isa) {
  return ClusterCompiler(op, isa).run();
}

}  // namespace rhea::ops
