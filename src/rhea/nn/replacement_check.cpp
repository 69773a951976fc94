// What an override must keep. Both modules are traced, the stock one into a graph that is thrown
// away.
#include <fmt/ranges.h>

#include <exception>
#include <map>
#include <new>
#include <span>

#include "rhea/base/error.h"
#include "rhea/nn/modules.h"

namespace rhea::nn {
namespace {

using Parts = std::map<std::string, Shape>;

// Stock name and shape in checkpoints of every part.
void add_parts(Parts& parts, std::span<const Parameter> parameters) {
  for (const Parameter& parameter : parameters)
    for (const ParameterPart& part : parameter.parts)
      parts.emplace(part.fqn, checkpoint_shape(parameter, part));
}

Parts parts_of(const Trace& trace, size_t first_parameter = 0, size_t first_constant = 0) {
  Parts parts;
  add_parts(parts, std::span(trace.parameters()).subspan(first_parameter));
  add_parts(parts, std::span(trace.constants()).subspan(first_constant));
  return parts;
}

std::vector<std::string> only_in(const Parts& some, const Parts& others) {
  std::vector<std::string> names;
  for (const auto& [name, shape] : some)
    if (!others.contains(name)) names.push_back(name);
  return names;
}

std::vector<std::string> texts(const std::vector<Value>& values) {
  std::vector<std::string> made;
  for (const Value& value : values)
    made.push_back(value.valid() ? ir::to_string(value.type()) : "nothing");
  return made;
}

class ReplacementCheck {
 public:
  ReplacementCheck(Trace& trace, const Replaced& replaced);

  Trace& stock_trace() { return stock_trace_; }
  Value input_like(const Value& value);
  // Inside a handler of `error`.
  [[noreturn]] void throw_named(const std::exception& error) const;
  // Results of the stock module and of the replacement.
  void compare(const std::vector<Value>& expected, const std::vector<Value>& found) const;
  void compare_parameters();

 private:
  Trace& trace_;
  const Replaced& replaced_;
  size_t parameters_before_, constants_before_;
  ir::Graph stock_graph_;
  Trace stock_trace_;
};

ReplacementCheck::ReplacementCheck(Trace& trace, const Replaced& replaced)
    : trace_(trace),
      replaced_(replaced),
      parameters_before_(trace.parameters().size()),
      constants_before_(trace.constants().size()),
      stock_trace_(stock_graph_, trace.options()) {
  stock_graph_.push_scope(trace.graph().scope_name(trace.graph().current_scope()));
}

void ReplacementCheck::throw_named(const std::exception& error) const {
  if (dynamic_cast<const ExitError*>(&error) != nullptr ||
      dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    throw;
  std::throw_with_nested(
      Error("Override '{}' at {}: {}", replaced_.by, replaced_.path, error.what()));
}

Value ReplacementCheck::input_like(const Value& value) {
  if (!value.valid()) return value;
  // Tokens, positions and the like are inputs of the stock graph already.
  return stock_graph_.input(fmt::format("argument.{}", stock_graph_.inputs().size()), value.type());
}

void ReplacementCheck::compare(const std::vector<Value>& expected,
                               const std::vector<Value>& found) const {
  const std::vector<std::string> stock = texts(expected), made = texts(found);
  if (stock != made)
    throw Error(
        "Override '{}' changes what {} gives: {} gives ({}), the replacement gives ({}); a "
        "replacement must keep types and shapes",
        replaced_.by, replaced_.path, type_name(*replaced_.stock), fmt::join(stock, ", "),
        fmt::join(made, ", "));
}

void ReplacementCheck::compare_parameters() {
  const Parts stock = parts_of(stock_trace_), all = parts_of(trace_);
  for (const auto& [name, shape] : stock) {
    const auto at = all.find(name);
    if (at != all.end() && at->second != shape)
      throw Error(
          "Override '{}' changes parameter {} of {}: its shape is {}, the replacement's part has "
          "{}; give the part the stock shape, however it is stored",
          replaced_.by, name, replaced_.path, ir::to_string(shape), ir::to_string(at->second));
  }
  if (const auto missing = only_in(stock, all); !missing.empty())
    trace_.note(
        fmt::format("Override '{}' leaves out parameters of {}: {}; checkpoints of this run do "
                    "not hold them",
                    replaced_.by, replaced_.path, fmt::join(missing, ", ")));
  const auto added =
      only_in(parts_of(trace_, parameters_before_, constants_before_), parts_of(stock_trace_));
  if (!added.empty())
    trace_.note(
        fmt::format("Override '{}' adds parameters to {}: {}; checkpoints of other runs lack them",
                    replaced_.by, replaced_.path, fmt::join(added, ", ")));
}

}  // namespace

void detail::check_replacement(
    Trace& trace, const Replaced& replaced,
    const std::function<std::vector<Value>(Trace& stock_trace, const StandIn& like)>& trace_stock,
    const std::function<std::vector<Value>()>& trace_replacement) {
  ReplacementCheck check(trace, replaced);
  const std::vector<Value> expected =
      trace_stock(check.stock_trace(), [&](const Value& value) { return check.input_like(value); });
  std::vector<Value> found;
  try {
    found = trace_replacement();
  } catch (const std::exception& error) {
    check.throw_named(error);
  }
  check.compare(expected, found);
  check.compare_parameters();
}

}  // namespace rhea::nn
