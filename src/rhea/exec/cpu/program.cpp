// From a legal graph to kernel calls: which values are views of others, which results take over an
// operand's buffer, which lie in the caller's memory, and how long the rest needs the arena.
#include "rhea/exec/cpu/program.h"

#include <algorithm>
#include <map>

#include "rhea/base/error.h"
#include "rhea/exec/cpu/copy.h"
#include "rhea/exec/cpu/views.h"
#include "rhea/ir/op_def.h"

namespace rhea::exec::cpu {
namespace {

constexpr int64_t kAlignment = 64;

// A value inside the buffer of another one (or of itself).
struct Placed {
  int32_t root = -1;   // the value that owns the buffer
  int64_t offset = 0;  // bytes
  int64_t row_stride = 0;
  bool strided = false;
};

// Memory of one or more roots (more: results that took over the buffer of a dying operand).
struct Storage {
  Place::Base base = Place::Base::arena;
  int32_t index = 0;
  int32_t first = INT32_MAX, last = -1;  // steps
  int64_t bytes = 0;
  int64_t offset = 0;
  bool listed = false;  // in Program::buffers
};

struct Use {
  int32_t node;
  int32_t operand;
};

class Builder {
 public:
  Builder(Program& program, bool reuse_in_place)
      : program_(program), graph_(program.graph), reuse_(reuse_in_place) {}

  void build() {
    give_donating_outputs_results_of_their_own();
    number_values();
    choose_kernels();
    if (reuse_) {
      for (size_t n = 0; n < graph_.nodes().size(); ++n) {
        if (live_[n] && graph_.nodes()[n].op->name == "concatenate") place_inside(n);
      }
    }
    place_values();
    find_lifetimes();
    place_outputs();
    if (reuse_) take_over_operands();
    list_buffers();
    list_bindings();
    emit_steps();
  }

 private:
  // An output that donates must be a result that nothing else is bound to, because it may end up in
  // the input's buffer.
  void give_donating_outputs_results_of_their_own() {
    std::map<ir::ValueId, int> seen;
    for (auto& out : graph_.outputs()) {
      if (out.donates.empty()) continue;
      const ir::Node& node = graph_.node(out.value);
      const auto* input = graph_.find_input(out.donates);
      RHEA_CHECK(input != nullptr, "output '{}' donates '{}', which is no input", out.name,
                 out.donates);
      if (graph_.type(input->value) != graph_.type(out.value))
        throw Error("output '{}' has type {}, but donates input '{}' of type {}", out.name,
                    ir::to_string(graph_.type(out.value)), out.donates,
                    ir::to_string(graph_.type(input->value)));
      if (input->value == out.value) continue;
      if (node.op == &ir::kInput || node.op == &ir::kConstant || is_pure_view(graph_, node) ||
          seen[out.value]++ > 0)
        out.value = graph_.add1(kCopy, {graph_.value(out.value)}).id;
    }
  }

  int32_t flat(ir::ValueId id) const { return base_[static_cast<size_t>(id.node)] + id.output; }
  const ir::Type& type(int32_t value) const { return *types_[static_cast<size_t>(value)]; }
  const ir::Node& producer(int32_t value) const {
    return graph_.nodes()[static_cast<size_t>(producer_[static_cast<size_t>(value)])];
  }
  Placed& placed(int32_t value) { return placed_[static_cast<size_t>(value)]; }
  Storage& storage_of(int32_t value) {
    return storages_[static_cast<size_t>(storage_index_[static_cast<size_t>(placed(value).root)])];
  }

  void number_values() {
    const auto& nodes = graph_.nodes();
    base_.resize(nodes.size());
    for (size_t n = 0; n < nodes.size(); ++n) {
      base_[n] = static_cast<int32_t>(types_.size());
      for (const ir::Type& t : nodes[n].outputs) {
        types_.push_back(&t);
        producer_.push_back(static_cast<int32_t>(n));
      }
    }
    live_.assign(nodes.size(), false);
    is_output_.assign(types_.size(), false);
    for (const auto& out : graph_.outputs()) {
      live_[static_cast<size_t>(out.value.node)] = true;
      is_output_[static_cast<size_t>(flat(out.value))] = true;
    }
    uses_.resize(types_.size());
    for (size_t n = nodes.size(); n-- > 0;) {
      if (nodes[n].op->has_side_effect) live_[n] = true;
      if (!live_[n]) continue;
      for (size_t i = 0; i < nodes[n].inputs.size(); ++i) {
        const ir::ValueId id = nodes[n].inputs[i];
        live_[static_cast<size_t>(id.node)] = true;
        uses_[static_cast<size_t>(flat(id))].push_back(
            {static_cast<int32_t>(n), static_cast<int32_t>(i)});
      }
    }
    placed_.resize(types_.size());
    inside_.resize(types_.size());
    joined_.assign(nodes.size(), false);
  }

  void choose_kernels() {
    const auto& nodes = graph_.nodes();
    choice_.resize(nodes.size());
    for (size_t n = 0; n < nodes.size(); ++n) {
      const ir::Node& node = nodes[n];
      if (!live_[n] || node.op == &ir::kInput || node.op == &ir::kConstant ||
          is_pure_view(graph_, node))
        continue;
      choice_[n] = program_.kernels->choose(graph_, node);
      RHEA_CHECK(choice_[n] != nullptr, "{} has no kernel after legalize", node.op->name);
    }
  }

  // Can every reader of `value` (besides `ignored`) read it with gaps between its rows?
  bool readers_take_strides(int32_t value, int32_t ignored) const {
    if (is_output_[static_cast<size_t>(value)]) return false;
    for (const Use use : uses_[static_cast<size_t>(value)]) {
      if (use.node == ignored) continue;
      const auto n = static_cast<size_t>(use.node);
      const ir::Node& node = graph_.nodes()[n];
      if (is_pure_view(graph_, node)) {
        if (keeps_rows(type(value), node.outputs[0]) && !readers_take_strides(base_[n], ignored))
          return false;
      } else if (use.operand >= 64 || !((choice_[n]->plan.strided_in >> use.operand) & 1)) {
        return false;
      }
    }
    return true;
  }

  // A strided operand read with the shape of `to` is still rows with one stride.
  static bool keeps_rows(const ir::Type& from, const ir::Type& to) {
    return to.rank() >= 2 && from.shape[0] == to.shape[0];
  }

  // The operands of a concatenate write straight into its buffer, if all of them can.
  void place_inside(size_t n) {
    const ir::Node& node = graph_.nodes()[n];
    const int32_t whole = base_[n];
    const int64_t element = dtype_size(type(whole).dtype);
    const int64_t row_stride = natural_row_stride(type(whole));
    std::vector<std::pair<int32_t, Placed>> parts;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto piece = concatenate_piece(graph_, node, i);
      if (!piece || piece->offset * element % kAlignment != 0 ||
          (piece->strided && row_stride * element % kAlignment != 0))
        return;
      int32_t part = flat(node.inputs[i]);
      while (is_pure_view(graph_, producer(part))) {
        const int32_t before = flat(producer(part).inputs[0]);
        if (is_output_[static_cast<size_t>(part)]) return;
        if (piece->strided &&
            !(type(before).rank() >= 2 && type(before).shape[0] == type(part).shape[0]))
          return;
        part = before;
      }
      const int32_t maker = producer_[static_cast<size_t>(part)];
      const auto& choice = choice_[static_cast<size_t>(maker)];
      const int32_t result = part - base_[static_cast<size_t>(maker)];
      if (!choice || joined_[static_cast<size_t>(maker)] || is_output_[static_cast<size_t>(part)] ||
          inside_[static_cast<size_t>(part)].root >= 0 || type(part).rank() < 1)
        return;
      if (piece->strided &&
          (type(part).rank() < 2 || result >= 64 || !((choice->plan.strided_out >> result) & 1) ||
           !readers_take_strides(part, static_cast<int32_t>(n))))
        return;
      for (const auto& [other, place] : parts) {
        if (other == part) return;
      }
      parts.push_back(
          {part,
           {whole, piece->offset * element,
            piece->strided ? row_stride : natural_row_stride(type(part)), piece->strided}});
    }
    for (const auto& [part, place] : parts) inside_[static_cast<size_t>(part)] = place;
    joined_[n] = true;
  }

  void place_values() {
    const auto& nodes = graph_.nodes();
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (!live_[n]) continue;
      for (size_t j = 0; j < nodes[n].outputs.size(); ++j) {
        const int32_t value = base_[n] + static_cast<int32_t>(j);
        placed(value) = inside_[static_cast<size_t>(value)].root >= 0
                            ? inside_[static_cast<size_t>(value)]
                            : Placed{value, 0, natural_row_stride(type(value)), false};
      }
      const bool view = is_pure_view(graph_, nodes[n])           ? place_view(n)
                        : reuse_ && nodes[n].op->name == "slice" ? place_slice(n)
                                                                 : joined_[n];
      if (view || nodes[n].op == &ir::kInput || nodes[n].op == &ir::kConstant) continue;
      if (!choice_[n]) choice_[n] = copy_choice(graph_.type(nodes[n].inputs[0]));
      order_.push_back(static_cast<int32_t>(n));
    }
  }

  bool place_view(size_t n) {
    const ir::Node& node = graph_.nodes()[n];
    const int32_t value = base_[n];
    const int32_t operand = flat(node.inputs[0]);
    const Placed from = placed(operand);
    if (from.strided && !keeps_rows(type(operand), type(value))) return false;
    placed(value) = {from.root, from.offset,
                     from.strided ? from.row_stride : natural_row_stride(type(value)),
                     from.strided};
    return true;
  }

  bool place_slice(size_t n) {
    const ir::Node& node = graph_.nodes()[n];
    const int32_t value = base_[n];
    const int32_t operand = flat(node.inputs[0]);
    const Placed from = placed(operand);
    const auto piece = slice_piece(type(operand), node, from.row_stride);
    if (!piece || type(operand).layout != ir::Layout::row_major) return false;
    const int64_t element = dtype_size(type(value).dtype);
    const int64_t offset = from.offset + piece->offset * element;
    if (offset % kAlignment != 0) return false;
    if (piece->strided && (type(value).rank() < 2 || from.row_stride * element % kAlignment != 0 ||
                           !readers_take_strides(value, -1)))
      return false;
    placed(value) = {from.root, offset,
                     piece->strided ? from.row_stride : natural_row_stride(type(value)),
                     piece->strided};
    return true;
  }

  void find_lifetimes() {
    storage_index_.assign(types_.size(), -1);
    for (int32_t value = 0; value < static_cast<int32_t>(types_.size()); ++value) {
      const auto n = static_cast<size_t>(producer_[static_cast<size_t>(value)]);
      if (!live_[n] || placed(value).root != value) continue;
      storage_index_[static_cast<size_t>(value)] = static_cast<int32_t>(storages_.size());
      Storage storage;
      storage.bytes = ir::byte_size(type(value));
      if (producer(value).op == &ir::kConstant) {
        storage.base = Place::Base::constant;
        storage.offset = add_constant(producer(value), type(value));
      }
      storages_.push_back(storage);
    }
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      Storage& storage = storage_of(flat(graph_.inputs()[i].value));
      storage.base = Place::Base::input;
      storage.index = static_cast<int32_t>(i);
    }
    for (int32_t s = 0; s < static_cast<int32_t>(order_.size()); ++s) {
      const auto n = static_cast<size_t>(order_[static_cast<size_t>(s)]);
      const ir::Node& node = graph_.nodes()[n];
      const auto touch = [&](int32_t value) {
        Storage& storage = storage_of(value);
        storage.first = std::min(storage.first, s);
        storage.last = std::max(storage.last, s);
      };
      for (size_t j = 0; j < node.outputs.size(); ++j) touch(base_[n] + static_cast<int32_t>(j));
      for (const ir::ValueId id : node.inputs) touch(flat(id));
    }
  }

  int64_t add_constant(const ir::Node& node, const ir::Type& t) {
    const double value = node.attrs.f64("value");
    for (const Constant& constant : program_.constants) {
      if (constant.value == value && constant.type == t) return constant.offset;
    }
    const int64_t offset = program_.memory.constants;
    program_.constants.push_back({value, t, offset});
    program_.memory.constants += round_up(ir::byte_size(t), kAlignment);
    return offset;
  }

  // Outputs lie in the caller's memory from the step that makes them on, where that is possible;
  // the others are copied at the end: those that only read inputs first.
  void place_outputs() {
    const auto end = static_cast<int32_t>(order_.size());
    const auto& outputs = graph_.outputs();
    for (size_t o = 0; o < outputs.size(); ++o) {
      const int32_t value = flat(outputs[o].value);
      const Place to{Place::Base::output, static_cast<int32_t>(o), 0,
                     natural_row_stride(type(value))};
      Storage& storage = storage_of(value);
      const bool whole = placed(value).offset == 0 && !placed(value).strided &&
                         storage.bytes == ir::byte_size(type(value));
      if (outputs[o].donates.empty()) {
        if (whole && storage.base == Place::Base::arena) {
          storage.base = to.base;
          storage.index = to.index;
        } else {
          storage.last = end;
          copies_.push_back({value, to});
        }
        continue;
      }
      donations_.push_back(o);
    }
    for (const size_t o : donations_) {
      const auto& out = outputs[o];
      const int32_t value = flat(out.value);
      const int32_t donated = flat(graph_.find_input(out.donates)->value);
      if (value == donated) continue;
      Storage& storage = storage_of(value);
      const bool whole = placed(value).offset == 0 && !placed(value).strided &&
                         storage.bytes == ir::byte_size(type(value));
      if (whole && storage.base == Place::Base::arena && may_overwrite(value, donated)) {
        storage.base = Place::Base::input;
        storage.index = storage_of(donated).index;
      } else {
        storage.last = end;
        late_copies_.push_back(
            {value,
             {Place::Base::input, storage_of(donated).index, 0, natural_row_stride(type(value))}});
      }
    }
  }

  // Is the input's buffer free when the step that makes `value` runs?
  bool may_overwrite(int32_t value, int32_t donated) {
    const int32_t last_read = storage_of(donated).last;
    const int32_t first_write = storage_of(value).first;
    if (last_read < first_write) return true;
    if (last_read > first_write || placed(value).root != value) return false;
    const auto n = static_cast<size_t>(producer_[static_cast<size_t>(value)]);
    return order_[static_cast<size_t>(first_write)] == static_cast<int32_t>(n) &&
           in_place_operand(n, value - base_[n], storage_index_[static_cast<size_t>(donated)]) >= 0;
  }

  // The operand that result j of node n may take the place of: it fills `storage`, and so does
  // every other operand in there.
  int in_place_operand(size_t n, int32_t j, int32_t storage) {
    const ir::Node& node = graph_.nodes()[n];
    const auto& pairs = choice_[n]->plan.in_place;
    const int64_t bytes = ir::byte_size(type(base_[n] + j));
    if (storages_[static_cast<size_t>(storage)].bytes != bytes) return -1;
    int found = -1;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int32_t operand = flat(node.inputs[i]);
      if (storage_index_[static_cast<size_t>(placed(operand).root)] != storage) continue;
      const std::pair<int, int> pair(static_cast<int>(i), j);
      if (std::ranges::find(pairs, pair) == pairs.end() || placed(operand).strided ||
          ir::byte_size(type(operand)) != bytes)
        return -1;
      if (found < 0) found = pair.first;
    }
    return found;
  }

  void take_over_operands() {
    for (int32_t s = 0; s < static_cast<int32_t>(order_.size()); ++s) {
      const auto n = static_cast<size_t>(order_[static_cast<size_t>(s)]);
      const ir::Node& node = graph_.nodes()[n];
      for (const auto& [i, j] : choice_[n]->plan.in_place) {
        const int32_t result = base_[n] + j;
        const int32_t operand = flat(node.inputs[static_cast<size_t>(i)]);
        const int32_t index = storage_index_[static_cast<size_t>(placed(operand).root)];
        Storage& storage = storages_[static_cast<size_t>(index)];
        Storage& own = storage_of(result);
        // A result in the caller's memory draws its operand there: nothing else writes an output.
        const bool to_output = own.base == Place::Base::output;
        if (storage.base != Place::Base::arena || storage.last != s ||
            (own.base != Place::Base::arena && !to_output) || placed(result).root != result ||
            storage_index_[static_cast<size_t>(result)] == index || own.first != s ||
            in_place_operand(n, j, index) < 0)
          continue;
        if (to_output) {
          storage.base = own.base;
          storage.index = own.index;
        }
        storage.last = std::max(storage.last, own.last);
        own.last = -1;  // no memory of its own
        storage_index_[static_cast<size_t>(result)] = index;
      }
    }
  }

  void list_buffers() {
    auto& buffers = program_.buffers;
    for (int32_t value = 0; value < static_cast<int32_t>(types_.size()); ++value) {
      const int32_t index = storage_index_[static_cast<size_t>(value)];
      if (index < 0) continue;
      Storage& storage = storages_[static_cast<size_t>(index)];
      // A result that took over an operand's buffer has the operand's.
      if (storage.base != Place::Base::arena || storage.last < 0 || storage.listed) continue;
      storage.listed = true;
      storage.index = static_cast<int32_t>(buffers.size());
      buffers.push_back(
          {{storage.first, storage.last, storage.bytes}, producer_[static_cast<size_t>(value)]});
    }
    workspaces_.assign(order_.size(), -1);
    MemoryPlan& memory = program_.memory;
    for (size_t s = 0; s < order_.size(); ++s) {
      const ir::KernelPlan& plan = choice_[static_cast<size_t>(order_[s])]->plan;
      memory.scratch = std::max(memory.scratch, round_up(plan.scratch_bytes, kAlignment));
      if (plan.workspace_bytes == 0) continue;
      memory.workspace = std::max(memory.workspace, plan.workspace_bytes);
      workspaces_[s] = static_cast<int32_t>(buffers.size());
      const auto step = static_cast<int32_t>(s);
      buffers.push_back({{step, step, plan.workspace_bytes}, order_[s], true});
    }
  }

  void list_bindings() {
    program_.num_kernel_steps = static_cast<int32_t>(order_.size());
    for (const auto& input : graph_.inputs()) {
      const Storage& storage = storage_of(flat(input.value));
      program_.inputs.push_back({{storage.first, storage.last}});
    }
    const auto end = program_.num_kernel_steps;
    for (size_t o = 0; o < graph_.outputs().size(); ++o) {
      const Storage& storage = storage_of(flat(graph_.outputs()[o].value));
      const bool in_place =
          storage.base == Place::Base::output && storage.index == static_cast<int32_t>(o);
      program_.outputs.push_back({{in_place ? storage.first : end, end}});
    }
  }

  Place place_of(int32_t value) {
    const Storage& storage = storage_of(value);
    return {storage.base, storage.index, storage.offset + placed(value).offset,
            placed(value).row_stride};
  }

  void emit_steps() {
    for (size_t s = 0; s < order_.size(); ++s) {
      const auto n = static_cast<size_t>(order_[s]);
      const ir::Node& node = graph_.nodes()[n];
      Step step;
      step.choice = choice_[n];
      step.node = order_[s];
      step.workspace = workspaces_[s];
      for (const ir::ValueId id : node.inputs) step.in.push_back(place_of(flat(id)));
      for (size_t j = 0; j < node.outputs.size(); ++j)
        step.out.push_back(place_of(base_[n] + static_cast<int32_t>(j)));
      // A view that had to be copied goes row by row of its operand.
      step.copy = is_pure_view(graph_, node);
      if (step.copy) step.out[0].row_stride = natural_row_stride(graph_.type(node.inputs[0]));
      add(std::move(step));
    }
    for (const auto* list : {&copies_, &late_copies_}) {
      for (const auto& [value, to] : *list) {
        Step step;
        step.choice = copy_choice(type(value));
        step.copy = true;
        step.node = producer_[static_cast<size_t>(value)];
        step.in = {place_of(value)};
        step.out = {to};
        add(std::move(step));
      }
    }
  }

  void add(Step step) {
    // Waking the other threads costs about as much as this much work.
    constexpr double kSerialFlops = 2e4, kSerialBytes = 3.2e4;
    const ir::Cost& cost = step.choice->cost;
    step.serial = cost.flops < kSerialFlops && cost.bytes < kSerialBytes;
    program_.steps.push_back(std::move(step));
  }

  Program& program_;
  ir::Graph& graph_;
  bool reuse_;

  // By node.
  std::vector<int32_t> base_;  // number of the first result
  std::vector<bool> live_;
  std::vector<bool> joined_;  // concatenates whose operands write into its buffer
  std::vector<std::shared_ptr<const KernelChoice>> choice_;
  // By value.
  std::vector<const ir::Type*> types_;
  std::vector<int32_t> producer_;
  std::vector<bool> is_output_;
  std::vector<std::vector<Use>> uses_;
  std::vector<Placed> placed_, inside_;
  std::vector<int32_t> storage_index_;  // roots only

  std::vector<Storage> storages_;
  std::vector<int32_t> order_;       // node of each step
  std::vector<int32_t> workspaces_;  // by step
  struct OutputCopy {
    int32_t value;
    Place to;
  };
  std::vector<OutputCopy> copies_, late_copies_;
  std::vector<size_t> donations_;
};

}  // namespace

Program make_program(ir::Graph graph, std::shared_ptr<KernelChooser> kernels, bool reuse_in_place) {
  Program program;
  program.graph = std::move(graph);
  program.kernels = std::move(kernels);
  Builder(program, reuse_in_place).build();
  return program;
}

}  // namespace rhea::exec::cpu
