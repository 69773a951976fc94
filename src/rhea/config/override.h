// Overrides: nodes of a config tree are replaced before anything is built from it.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rhea/config/override_imports.h"

namespace rhea::config {

// What overrides did to a tree.
struct Applied {
  struct Node {
    std::string path, override_name;
  };
  std::vector<Node> nodes;  // replaced, in tree order
  // Names of the overrides that replaced something, by their first node.
  std::vector<std::string> names() const;
};

// Replaces the nodes below `root` that the overrides named by `imports` claim, logs one line for
// each and their number, and warns of overrides that claim nothing. Claims are made on the
// unchanged tree, so the order of imports does not matter. Throws Error, having changed nothing:
// entries that cannot be resolved, two claims of one node, claims inside each other, a factory that
// throws or makes another kind of config. Empty `imports`: nothing is done or logged.
//
// `unused` says why nothing is built from a node, "" where something is. Such a node is left out of
// the claims of an override that has others, with a log line; one that claims nothing else is an
// error.
Applied apply_overrides(Config& root, std::span<const std::string> imports,
                        const OverrideRegistry& registry, const LoadModule& load,
                        const std::function<std::string(const Config& node)>& unused = {});

}  // namespace rhea::config
