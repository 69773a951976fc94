// The table of optimizers and the values of their arguments.
#include "rhea/components/train_step/optimizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "rhea/base/error.h"
#include "rhea/config/leaf_text.h"
#include "rhea/config/option_index.h"
#include "rhea/ops/ops.h"

namespace rhea::train_step {
namespace {

using config::Problem;

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

std::vector<std::string>::const_iterator find_more(const OptimizerKwargs& kwargs,
                                                   std::string_view name) {
  return std::ranges::find_if(kwargs.more,
                              [&](const std::string& entry) { return name_of(entry) == name; });
}

// Calls visit(name, place) for each field of OptimizerKwargs but `more`.
template <class F>
void for_each_argument(OptimizerKwargs& kwargs, F&& visit) {
  const config::OptionIndex index(kwargs);
  for (const auto& option : index.options())
    if (const auto* leaf = std::get_if<config::LeafOption>(&option.kind); option.path != "more")
      visit(option.path, leaf->place);
}

bool is_set(const Leaf& place) { return config::leaf_text(place) != "None"; }

void check_moments(const OptimizerKwargs& kwargs, const Refuse& refuse) {
  auto betas = *kwargs.betas;
  if (betas.size() != 2 || std::ranges::any_of(betas, [](double b) { return b >= 1; }))
    refuse("betas", config::leaf_text(&betas), "must be two numbers, each at least 0 and below 1");
}

std::vector<Value> adam(const UpdateInputs& in, const OptimizerKwargs& k, bool decoupled) {
  return in.graph.add(ops::kAdam,
                      std::vector{in.p, in.g, in.state[0], in.state[1], in.clip, in.lr, in.step},
                      {{"beta1", (*k.betas)[0]},
                       {"beta2", (*k.betas)[1]},
                       {"eps", *k.eps},
                       {"weight_decay", *k.weight_decay},
                       {"decoupled", int64_t{decoupled}}});
}

std::string_view fault_of(const Optimizer& optimizer) {
  if (!optimizer.state) return "has no state function";
  if (!optimizer.update) return "has no update function";
  return optimizer.defaults.lr ? "" : "has no default of lr";
}

Optimizer adam_row(const char* name, bool decoupled) {
  Optimizer row;
  row.name = name;
  row.defaults.lr = 1e-3;
  row.defaults.betas = {0.9, 0.999};
  row.defaults.eps = 1e-8;
  row.defaults.weight_decay = decoupled ? 0.01 : 0.0;
  row.state = [](const OptimizerKwargs&) {
    return std::vector<std::string>{"exp_avg", "exp_avg_sq"};
  };
  row.update = [decoupled](const UpdateInputs& in, const OptimizerKwargs& kwargs) {
    return adam(in, kwargs, decoupled);
  };
  row.check = check_moments;
  return row;
}

Optimizer sgd_row() {
  Optimizer row;
  row.name = "SGD";
  row.defaults.lr = 1e-3;
  row.defaults.momentum = 0.0;
  row.defaults.dampening = 0.0;
  row.defaults.nesterov = false;
  row.defaults.weight_decay = 0.0;
  row.state = [](const OptimizerKwargs& k) {
    return *k.momentum != 0 ? std::vector<std::string>{"momentum_buffer"}
                            : std::vector<std::string>{};
  };
  row.update = [](const UpdateInputs& in, const OptimizerKwargs& k) {
    std::vector<Value> operands = {in.p, in.g};
    operands.insert(operands.end(), in.state.begin(), in.state.end());
    operands.insert(operands.end(), {in.clip, in.lr, in.step});
    return in.graph.add(ops::kSgd, operands,
                        {{"momentum", *k.momentum},
                         {"dampening", *k.dampening},
                         {"nesterov", int64_t{*k.nesterov}},
                         {"weight_decay", *k.weight_decay}});
  };
  row.check = [](const OptimizerKwargs& k, const Refuse& refuse) {
    if (*k.nesterov && (*k.momentum <= 0 || *k.dampening != 0))
      refuse("nesterov", "true",
             fmt::format("needs a momentum above 0 and dampening 0, got {} and {}", *k.momentum,
                         *k.dampening));
  };
  return row;
}

}  // namespace

Value UpdateInputs::weight() const { return ops::convert(p, DType::f32); }
Value UpdateInputs::gradient() const {
  return ops::multiply(ops::convert(g, DType::f32), spread(clip));
}
Value UpdateInputs::state_value(size_t i) const { return ops::convert(state.at(i), DType::f32); }
Value UpdateInputs::spread(Value number) const {
  return ops::broadcast_in_dim(number, p.shape(), {});
}

NamedTable<Optimizer>& optimizers() {
  static NamedTable<Optimizer> table = [] {
    NamedTable<Optimizer> made("optimizer", fault_of);
    made.add(adam_row("AdamW", true), kInTree);
    made.add(adam_row("Adam", false), kInTree);
    made.add(sgd_row(), kInTree);
    return made;
  }();
  return table;
}

double more_number(const OptimizerKwargs& kwargs, std::string_view name) {
  const auto found = find_more(kwargs, name);
  if (found == kwargs.more.end()) throw Error("the optimizer has no argument '{}'", name);
  const std::string_view text = std::string_view(*found).substr(name.size());
  double value = 0;
  const char* end = text.data() + text.size();
  const char* begin = text.empty() ? end : text.data() + 1;  // behind the '='
  if (const auto [rest, error] = std::from_chars(begin, end, value);
      error != std::errc() || rest != end)
    throw Error("optimizer argument '{}' is no number", *found);
  return value;
}

OptimizerKwargs with_defaults(const Optimizer& optimizer, const OptimizerKwargs& given) {
  OptimizerKwargs made = given;
  OptimizerKwargs defaults = optimizer.defaults;
  const config::OptionIndex places(defaults);
  for_each_argument(made, [&](const std::string& name, const Leaf& place) {
    if (is_set(place)) return;
    const auto& from = std::get<config::LeafOption>(places.find(name)->kind).place;
    std::visit([&](auto* to) { *to = *std::get<decltype(to)>(from); }, place);
  });
  for (const std::string& entry : defaults.more)
    if (find_more(made, name_of(entry)) == made.more.end()) made.more.push_back(entry);
  return made;
}

void check_group(const ParamGroup& group, const std::string& path, std::vector<Problem>& problems) {
  const Optimizer* optimizer = optimizers().find(group.optimizer_name);
  if (optimizer == nullptr) {
    problems.push_back({path + ".optimizer_name", "'" + group.optimizer_name + "'",
                        fmt::format("Optimizer {} not added. Optimizers: {}", group.optimizer_name,
                                    joined(optimizers().names())),
                        true});
    return;
  }
  OptimizerKwargs defaults = optimizer->defaults, given = group.optimizer_kwargs;
  std::vector<std::string> known, unknown;
  const config::OptionIndex places(defaults);
  for_each_argument(given, [&](const std::string& name, const Leaf& place) {
    if (is_set(std::get<config::LeafOption>(places.find(name)->kind).place))
      known.push_back(name);
    else if (is_set(place))
      unknown.push_back(name);
  });
  for (const std::string& entry : defaults.more) known.emplace_back(name_of(entry));
  for (const std::string& entry : given.more)
    if (find_more(defaults, name_of(entry)) == defaults.more.end() ||
        entry.find('=') == std::string::npos)
      unknown.push_back("more " + entry);
  const std::string kwargs = path + ".optimizer_kwargs.";
  for (const std::string& name : unknown)
    problems.push_back(
        {kwargs + name, "",
         fmt::format("{} has no such argument; it has: {}", optimizer->name, joined(known)), true});
  if (unknown.empty() && optimizer->check)
    optimizer->check(with_defaults(*optimizer, given),
                     [&](std::string_view argument, std::string value, std::string reason) {
                       problems.push_back({kwargs + std::string(argument), std::move(value),
                                           std::move(reason), true});
                     });
}

std::string describe(const OptimizerKwargs& kwargs) {
  OptimizerKwargs copy = kwargs;
  std::string text;
  const auto append = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, value);
  };
  for_each_argument(copy, [&](const std::string& name, const Leaf& place) {
    if (!is_set(place)) return;
    const auto* list = std::get_if<std::optional<std::vector<double>>*>(&place);
    append(name, list == nullptr ? config::leaf_text(place)
                                 : fmt::format("({})", fmt::join(***list, ", ")));
  });
  for (const std::string& entry : copy.more)
    append(name_of(entry), std::string_view(entry).substr(name_of(entry).size() + 1));
  return "{" + text + "}";
}

}  // namespace rhea::train_step
