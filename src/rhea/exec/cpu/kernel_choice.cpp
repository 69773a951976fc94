#include "rhea/exec/cpu/kernel_choice.h"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <string_view>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/exec/cpu/profile.h"
#include "rhea/ir/row_cells.h"
#include "rhea/ops/cost.h"
#include "rhea/ops/plan_kernel.h"
#include "rhea/ops/table.h"

namespace rhea::exec::cpu {
namespace {

template <class T>
void append_bytes(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_type(std::string& key, const ir::Type& type) {
  append_bytes(key, type.dtype);
  append_bytes(key, type.layout);
  append_bytes(key, type.shape.size());
  for (const int64_t dim : type.shape) append_bytes(key, dim);
}

void append_attr(std::string& key, const ir::Attr& attr) {
  append_bytes(key, attr.index());
  if (const auto* i = std::get_if<int64_t>(&attr)) append_bytes(key, *i);
  if (const auto* d = std::get_if<double>(&attr)) append_bytes(key, *d);
  if (const auto* t = std::get_if<DType>(&attr)) append_bytes(key, *t);
  if (const auto* s = std::get_if<std::string>(&attr)) {
    append_bytes(key, s->size());
    key += *s;
  }
  if (const auto* list = std::get_if<std::vector<int64_t>>(&attr)) {
    append_bytes(key, list->size());
    for (const int64_t value : *list) append_bytes(key, value);
  }
}

// Binary key of everything that a kernel may look at; attributes are sorted by name.
void make_key(std::string& key, const ir::Graph& graph, const ir::Node& node) {
  key.clear();
  append_bytes(key, node.op);
  append_bytes(key, node.inputs.size());
  for (const ir::ValueId id : node.inputs) append_type(key, graph.type(id));
  append_bytes(key, node.outputs.size());
  for (const ir::Type& type : node.outputs) append_type(key, type);
  for (const auto& [name, value] : node.attrs) {
    key += name;
    append_attr(key, value);
  }
}

// What becomes of a kernel from outside is said once in a process, not once for each graph.
void log_outside(const std::string& line) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (said.insert(line).second) log::info("kernels", "{}", line);
}

}  // namespace

KernelChooser::KernelChooser(Isa isa, bool added_kernels)
    : isa_(isa), added_kernels_(added_kernels), log_(log_topic("kernels")) {}

std::shared_ptr<const KernelChoice> KernelChooser::choose(const ir::Graph& graph,
                                                          const ir::Node& node) {
  make_key(key_, graph, node);
  if (const auto at = memo_.find(key_); at != memo_.end()) return at->second;
  return memo_.emplace(key_, choose_new(graph, node)).first->second;
}

std::shared_ptr<KernelChoice> KernelChooser::choose_new(const ir::Graph& graph,
                                                        const ir::Node& node) {
  std::vector<ir::Type> in;
  in.reserve(node.inputs.size());
  for (const ir::ValueId id : node.inputs) in.push_back(graph.type(id));
  const ir::OpInstance op{node.op, in, node.outputs, &node.attrs};

  auto choice = std::make_shared<KernelChoice>();
  choice->types = fmt::format("{} -> {}", ir::to_string(op.in), ir::to_string(op.out));
  choice->cost = ops::cost_of(op, {&graph, &node});
  std::string refusals;
  bool taken = false;
  const std::string_view row_origin = ops::origin_of(*node.op);
  // Takes the kernel, or notes why not. A kernel from outside that refuses is always told of, and
  // one that comes before those of the op's row also when it is taken.
  const auto consider = [&](const ir::CpuKernel& kernel, std::string_view origin, bool is_added) {
    const std::string why = ops::refusal(kernel, op, isa_, {&graph, &node});
    const bool is_outside = !origin.empty() && origin != ops::kInTree;
    taken = why.empty();
    if (taken) {
      choice->kernel = kernel.name;
      choice->is_outside = is_outside;
      choice->plan = ops::plan_kernel(kernel, op, {&graph, &node});
    } else {
      refusals += fmt::format("{}{} refused: {}", refusals.empty() ? "" : "; ", kernel.name, why);
    }
    if (is_outside && (is_added || !taken))
      log_outside(fmt::format("{}({}): kernel {} of {} {}", node.op->name, choice->types,
                              kernel.name, origin, taken ? "is used" : "refused: " + why));
    else if (log_ && !taken)
      log::info("kernels", "{}({}): kernel {} refused: {}", node.op->name, choice->types,
                kernel.name, why);
  };
  if (added_kernels_) {
    for (const ops::AddedKernel& added : ops::added_kernels(*node.op)) {
      if (!taken) consider(added.kernel, added.origin, true);
    }
  }
  for (const ir::CpuKernel& kernel : node.op->cpu) {
    if (!taken) consider(kernel, row_origin, false);
  }
  if (!taken) {
    if (node.op->decompose) return nullptr;
    if (!node.op->reference)
      throw Error("{}({}): no kernel, no decomposition and no reference\n  in {}\n  at {}",
                  node.op->name, choice->types, graph.scope_name(node), graph.location_name(node));
    choice->kernel = "reference";
    choice->plan = plan_reference(op);
  }
  choice->note = choice->plan.note;
  if (!refusals.empty()) choice->note += (choice->note.empty() ? "" : "; ") + refusals;
  if (log_) log::info("kernels", "{}({}): {}", node.op->name, choice->types, choice->kernel);
  return choice;
}

void KernelChooser::make_states() {
  for (auto& [key, choice] : memo_) {
    if (choice && !choice->plan.state) ops::make_state(choice->plan, choice->kernel, choice->types);
  }
}

}  // namespace rhea::exec::cpu
