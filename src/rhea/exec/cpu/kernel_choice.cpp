#include "rhea/exec/cpu/kernel_choice.h"

#include <fmt/format.h>

#include <string_view>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/exec/cpu/profile.h"

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

}  // namespace

ir::Cost node_cost(const ir::OpInstance& op) {
  if (op.op->cost) return op.op->cost(op);
  ir::Cost cost;
  for (const ir::Type& type : op.in) cost.bytes += static_cast<double>(ir::byte_size(type));
  for (const ir::Type& type : op.out) {
    cost.bytes += static_cast<double>(ir::byte_size(type));
    cost.flops += static_cast<double>(ir::num_elements(type.shape));
  }
  return cost;
}

KernelChooser::KernelChooser(Isa isa) : isa_(isa), log_(log_topic("kernels")) {}

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
  choice->cost = node_cost(op);
  std::string refusals;
  const auto refuse = [&](std::string_view kernel, std::string_view why) {
    refusals += fmt::format("{}{} refused: {}", refusals.empty() ? "" : "; ", kernel, why);
    if (log_)
      log::info("kernels", "{}({}): kernel {} refused: {}", node.op->name, choice->types, kernel,
                why);
  };
  for (const ir::CpuKernel& kernel : node.op->cpu) {
    if (kernel.isa > isa_) {
      refuse(kernel.name, fmt::format("needs {}, have {}", isa_name(kernel.isa), isa_name(isa_)));
      continue;
    }
    if (const std::string why = kernel.accepts ? kernel.accepts(op) : ""; !why.empty()) {
      refuse(kernel.name, why);
      continue;
    }
    choice->kernel = kernel.name;
    choice->plan = kernel.plan(op);
    break;
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
