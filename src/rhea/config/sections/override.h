// Section `override`: which replacements of config nodes are active.
#pragma once
#include "rhea/config/visitor.h"

namespace rhea {

struct OverrideConfig : Config {
  std::vector<std::string> imports;

  void fields(Visitor& v) override {
    v("imports", imports,
      "files or names of overrides, separated by spaces or commas; target={\"json\": 1} has "
      "arguments");
  }
};

}  // namespace rhea
