#include "rhea/exec/cpu/kernel_choice.h"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <string_view>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/exec/cpu/profile.h"
#include "rhea/ops/cost.h"
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

std::string types_text(const ir::OpInstance& op) {
  std::string text;
  for (const ir::Type& type : op.in) text += (text.empty() ? "" : ", ") + ir::to_string(type);
  text += " ->";
  for (size_t i = 0; i < op.out.size(); ++i)
    text += (i == 0 ? " " : ", ") + ir::to_string(op.out[i]);
  return text;
}

// What becomes of a kernel from outside is said once in a process, not once for each graph.
void log_added(const std::string& line) {
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
  choice->types = types_text(op);
  choice->cost = ops::cost_of(op);
  std::string refusals;
  const auto refuse = [&](std::string_view kernel, std::string_view why) {
    refusals += fmt::format("{}{} refused: {}", refusals.empty() ? "" : "; ", kernel, why);
    if (log_)
      log::info("kernels", "{}({}): kernel {} refused: {}", node.op->name, choice->types, kernel,
                why);
  };
  // Takes the kernel, or says why not.
  const auto take = [&](const ir::CpuKernel& kernel) {
    std::string why = kernel.isa > isa_
                          ? fmt::format("needs {}, have {}", isa_name(kernel.isa), isa_name(isa_))
                      : kernel.accepts ? kernel.accepts(op)
                                       : std::string();
    if (!why.empty()) return why;
    choice->kernel = kernel.name;
    choice->plan = kernel.plan(op);
    return why;
  };
  if (added_kernels_) {
    for (const ops::AddedKernel& added : ops::added_kernels(*node.op)) {
      const std::string why = take(added.kernel);
      log_added(fmt::format("{}({}): kernel {} of {} {}", node.op->name, choice->types,
                            added.kernel.name, added.origin,
                            why.empty() ? "is used" : "refused: " + why));
      if (why.empty()) break;
      refuse(added.kernel.name, why);
    }
  }
  for (const ir::CpuKernel& kernel : node.op->cpu) {
    if (!choice->kernel.empty()) break;
    if (const std::string why = take(kernel); !why.empty()) refuse(kernel.name, why);
  }
  if (choice->kernel.empty()) {
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
    if (choice && choice->plan.make_state && !choice->plan.state)
      choice->plan.state = choice->plan.make_state();
  }
}

}  // namespace rhea::exec::cpu
