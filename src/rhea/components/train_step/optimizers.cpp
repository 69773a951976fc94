// The table of optimizers.
#include "rhea/components/train_step/optimizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "rhea/base/error.h"
#include "rhea/config/leaf_text.h"
#include "rhea/ops/ops.h"

namespace rhea::train_step {
namespace {

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
  for (const std::string& entry : kwargs.more) {
    const size_t split = entry.find('=');
    if (entry.compare(0, split, name) != 0) continue;
    double value = 0;
    const char* end = entry.data() + entry.size();
    const char* begin = split == std::string::npos ? end : entry.data() + split + 1;
    if (const auto [rest, error] = std::from_chars(begin, end, value);
        error != std::errc() || rest != end)
      throw Error("optimizer argument '{}' is no number", entry);
    return value;
  }
  throw Error("the optimizer has no argument '{}'", name);
}

}  // namespace rhea::train_step
