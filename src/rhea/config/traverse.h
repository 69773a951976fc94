// Walks a config tree by path: the view that overrides and checkpoints of the config need.
#pragma once
#include <functional>
#include <string>

#include "rhea/config/config.h"

namespace rhea::config {

// One config of the tree, at its full path ("model_spec.model.layers.0.attention"). `slot` is the
// place that holds it, null for a plain member, which nothing can replace.
struct Node {
  std::string path;
  Config& config;
  SlotBase* slot;
  int depth = 0;  // nodes around it
};

// Calls `visit` for every config below `root` in the order of fields(), parents first. `visit` may
// refill the node's slot; what it puts there is not walked when it returns false.
void traverse(Config& root, const std::function<bool(const Node&)>& visit);

}  // namespace rhea::config
