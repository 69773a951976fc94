// Param groups by regular expression.
#include "rhea/components/train_step/optimizer_groups.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "rhea/base/error.h"
#include "rhea/config/pattern.h"
#include "rhea/ops/ops.h"

namespace rhea::train_step {
namespace {

ResolvedGroup resolve(const ParamGroup& group) {
  const auto& kwargs = group.optimizer_kwargs;
  ResolvedGroup made;
  made.pattern = group.pattern;
  made.optimizer_name = group.optimizer_name;
  const bool adamw = group.optimizer_name == "AdamW";
  if (!adamw && group.optimizer_name != "Adam" && group.optimizer_name != "SGD")
    throw Error("Optimizer {} not added. Known: AdamW, Adam, SGD", group.optimizer_name);
  made.lr = kwargs.lr.value_or(1e-3);
  if (kwargs.betas) {
    if (kwargs.betas->size() != 2)
      throw Error("optimizer.param_groups '{}': betas needs two numbers, got {}", group.pattern,
                  kwargs.betas->size());
    made.beta1 = (*kwargs.betas)[0];
    made.beta2 = (*kwargs.betas)[1];
  }
  made.eps = kwargs.eps.value_or(1e-8);
  made.weight_decay = kwargs.weight_decay.value_or(adamw ? 0.01 : 0);
  made.momentum = kwargs.momentum.value_or(0);
  made.dampening = kwargs.dampening.value_or(0);
  made.nesterov = kwargs.nesterov.value_or(false);
  return made;
}

}  // namespace

std::vector<std::string> ResolvedGroup::state_names() const {
  if (optimizer_name != "SGD") return {"exp_avg", "exp_avg_sq"};
  if (momentum != 0) return {"momentum_buffer"};
  return {};
}

std::string ResolvedGroup::describe() const {
  if (optimizer_name == "SGD")
    return fmt::format("{{lr: {}, momentum: {}, dampening: {}, nesterov: {}, weight_decay: {}}}",
                       lr, momentum, dampening, nesterov, weight_decay);
  return fmt::format("{{lr: {}, betas: ({}, {}), eps: {}, weight_decay: {}}}", lr, beta1, beta2,
                     eps, weight_decay);
}

GroupAssignment assign_groups(const OptimizerConfig& optimizer,
                              const std::vector<std::string>& fqns,
                              const std::vector<int64_t>& sizes) {
  if (optimizer.param_groups.empty())
    throw Error("optimizer.param_groups is empty: no parameter would be trained");
  GroupAssignment result;
  std::vector<config::Pattern> patterns;
  for (const auto& group : optimizer.param_groups) {
    result.groups.push_back(resolve(group));
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

std::vector<ir::Value> add_update(ir::Graph& graph, const ResolvedGroup& group, ir::Value p,
                                  ir::Value g, const std::vector<ir::Value>& state, ir::Value clip,
                                  ir::Value lr, ir::Value step) {
  if (group.optimizer_name == "SGD") {
    std::vector<ir::Value> in = {p, g};
    in.insert(in.end(), state.begin(), state.end());
    in.insert(in.end(), {clip, lr, step});
    return graph.add(ops::kSgd, in,
                     {{"momentum", group.momentum},
                      {"dampening", group.dampening},
                      {"nesterov", int64_t{group.nesterov}},
                      {"weight_decay", group.weight_decay}});
  }
  return graph.add(ops::kAdam, std::vector{p, g, state[0], state[1], clip, lr, step},
                   {{"beta1", group.beta1},
                    {"beta2", group.beta2},
                    {"eps", group.eps},
                    {"weight_decay", group.weight_decay},
                    {"decoupled", int64_t{group.optimizer_name == "AdamW"}}});
}

}  // namespace rhea::train_step
