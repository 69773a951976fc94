// Which optimizer updates which parameter with which arguments.
#pragma once
#include <string>
#include <vector>

#include "rhea/config/sections/optimizer.h"
#include "rhea/ir/graph.h"

namespace rhea::train_step {

// One entry of optimizer.param_groups with every argument resolved.
struct ResolvedGroup {
  std::string pattern;
  std::string optimizer_name;  // AdamW, Adam, SGD
  double lr = 0;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  double momentum = 0, dampening = 0;
  bool nesterov = false;
  int64_t num_parameters = 0;  // elements this group updates

  // Names of the state tensors of one parameter: exp_avg, exp_avg_sq or momentum_buffer; none for
  // plain SGD.
  std::vector<std::string> state_names() const;
  std::string describe() const;  // "{lr: 0.0008, betas: (0.9, 0.95), ...}"
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
// state_names().
std::vector<ir::Value> add_update(ir::Graph& graph, const ResolvedGroup& group, ir::Value p,
                                  ir::Value g, const std::vector<ir::Value>& state, ir::Value clip,
                                  ir::Value lr, ir::Value step);

}  // namespace rhea::train_step
