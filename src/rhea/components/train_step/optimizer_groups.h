// Which optimizer updates which parameter with which arguments.
#pragma once
#include <string>
#include <vector>

#include "rhea/components/train_step/optimizers.h"

namespace rhea::train_step {

// One entry of optimizer.param_groups with every argument resolved.
struct ResolvedGroup {
  std::string pattern;
  const Optimizer* optimizer = nullptr;  // of the table
  OptimizerKwargs kwargs;                // with the defaults of the optimizer filled in
  int64_t num_parameters = 0;            // elements this group updates

  const std::string& optimizer_name() const { return optimizer->name; }
  double lr() const { return *kwargs.lr; }
  bool decays() const { return kwargs.weight_decay.value_or(0) != 0; }
  // Names of the state tensors of one parameter.
  std::vector<std::string> state_names() const { return optimizer->state(kwargs); }
};

struct GroupAssignment {
  std::vector<ResolvedGroup> groups;
  std::vector<size_t> group_of;  // one per parameter
};

// The first group whose pattern is found in the FQN wins. Throws Error for an empty list, a bad
// pattern, a pattern that matches nothing, an unknown optimizer, and for parameters that no group
// claims (up to 10 named).
GroupAssignment assign_groups(const OptimizerConfig& optimizer,
                              const std::vector<std::string>& fqns,
                              const std::vector<int64_t>& sizes);

// Adds the update of one parameter to the graph: p' and the new state, in the order of
// state_names(), of the types that they have in `in`. Throws Error naming the optimizer where it
// gives another number of values or other shapes.
std::vector<ir::Value> add_update(const ResolvedGroup& group, const UpdateInputs& in);

}  // namespace rhea::train_step
