// Param groups by regular expression.
#include "rhea/components/train_step/optimizer_groups.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "rhea/base/error.h"
#include "rhea/base/rethrow.h"
#include "rhea/components/train_step/optimizer_arguments.h"
#include "rhea/config/pattern.h"
#include "rhea/ops/ops.h"

namespace rhea::train_step {
GroupAssignment assign_groups(const OptimizerConfig& optimizer,
                              const std::vector<std::string>& fqns,
                              const std::vector<int64_t>& sizes) {
  if (optimizer.param_groups.empty())
    throw Error("optimizer.param_groups is empty: no parameter would be trained");
  GroupAssignment result;
  std::vector<config::Pattern> patterns;
  for (const auto& group : optimizer.param_groups) {
    const Optimizer* rule = optimizers().find(group.optimizer_name);
    if (rule == nullptr)
      throw Error("Optimizer {} not added. Optimizers: {}", group.optimizer_name,
                  joined(optimizers().names()));
    result.groups.push_back({group.pattern, rule, with_defaults(*rule, group.optimizer_kwargs)});
    patterns.emplace_back(group.pattern);
  }
  std::vector<std::string> unclaimed;
  for (size_t i = 0; i < fqns.size(); ++i) {
    size_t group = 0;
    while (group < patterns.size() && !patterns[group].found_in(fqns[i])) ++group;
    if (group == patterns.size()) {
      unclaimed.push_back(fqns[i]);
      continue;
    }
    result.group_of.push_back(group);
    result.groups[group].num_parameters += sizes[i];
  }
  if (!unclaimed.empty()) {
    const size_t count = unclaimed.size();
    if (count > 10) unclaimed.resize(10);
    throw Error("{} trainable parameter(s) are in no optimizer.param_groups pattern: {}{}", count,
                fmt::join(unclaimed, ", "), count > 10 ? ", ..." : "");
  }
  for (const auto& group : result.groups) {
    if (group.num_parameters == 0)
      throw Error("Optimizer param_groups pattern '{}' matched no parameters", group.pattern);
  }
  return result;
}

std::vector<ir::Value> add_update(const ResolvedGroup& group, const UpdateInputs& in) {
  std::vector<ir::Value> made;
  try {
    made = group.optimizer->update(in, group.kwargs);
  } catch (...) {
    rethrow_with(fmt::format("optimizer {}: update of {}", group.optimizer_name(),
                             in.graph.scope_name(in.graph.current_scope())));
  }
  if (made.size() != 1 + in.state.size())
    throw Error("optimizer {} gives {} values for {}: expected the parameter and {} of state",
                group.optimizer_name(), made.size(), in.graph.scope_name(in.graph.current_scope()),
                in.state.size());
  for (size_t i = 0; i < made.size(); ++i) {
    const ir::Type& wanted = (i == 0 ? in.p : in.state[i - 1]).type();
    if (made[i].graph != &in.graph)
      throw Error("optimizer {} gives {} as value {} of {}, expected {}", group.optimizer_name(),
                  made[i].valid() ? "a value of another graph" : "nothing", i,
                  in.graph.scope_name(in.graph.current_scope()), to_string(wanted));
    if (made[i].type().dtype == DType::f32) made[i] = ops::convert(made[i], wanted.dtype);
    if (made[i].type() != wanted)
      throw Error("optimizer {} gives {} as value {} of {}, expected {} (or its f32)",
                  group.optimizer_name(), to_string(made[i].type()), i,
                  in.graph.scope_name(in.graph.current_scope()), to_string(wanted));
  }
  return made;
}

}  // namespace rhea::train_step
