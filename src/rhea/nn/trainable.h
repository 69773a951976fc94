// Which parameters of a model are trained.
#pragma once
#include <string>
#include <vector>

#include "rhea/config/visitor.h"
#include "rhea/nn/trace.h"

namespace rhea::nn {

// One rule of Decoder::Config::trainable.
struct TrainableRule : Config {
  std::string fqn;  // glob over FQNs of parameters, in checkpoints' names
  bool trainable = false;

  TrainableRule() = default;
  // As its two fields.
  TrainableRule(std::string glob, bool value) : fqn(std::move(glob)), trainable(value) {}
  void fields(Visitor& v) override;
};

// The last rule that matches the FQN decides; without one a parameter is trained. The same holds
// for a constant that follows the load of experts (Trace::balance).
bool is_trainable(const std::vector<TrainableRule>& rules, const std::string& fqn);
// Of a fused parameter only some parts are trained.
bool is_partly_trainable(const std::vector<TrainableRule>& rules, const Parameter& parameter);
// Throws Error naming a part where it is partly so: the parts share one gradient.
bool is_trainable(const std::vector<TrainableRule>& rules, const Parameter& parameter);

}  // namespace rhea::nn
