// Uses installed headers and the shared library; prints the version, which the test compares with
// the program's.
#include <cstdio>
#include <string>

#include "rhea/base/version.h"
#include "rhea/ir/graph.h"
#include "rhea/plugin/plugin.h"

namespace {

rhea::TrainerConfig two_steps() {
  rhea::TrainerConfig config;
  config.training.steps = 2;
  return config;
}

}  // namespace

RHEA_CONFIG(two_steps, "a run that a program registers is a function like any other")

RHEA_PLUGIN(p) { std::printf("%s\n", p.origin().c_str()); }

int main() {
  if (rhea_config_two_steps.make().training.steps != 2) return 1;
  std::printf("rhea %s\n", std::string(rhea::version()).c_str());
  return 0;
}
