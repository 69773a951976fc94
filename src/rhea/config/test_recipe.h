// A registry for tests: two modules, one of them with an alias, and a function that fails.
#pragma once
#include <string>
#include <vector>

#include "rhea/config/command_line.h"
#include "rhea/config/validate.h"

namespace rhea::config {

inline TrainerConfig test_recipe() {
  TrainerConfig c;
  c.model_spec.name = "llama3";
  c.model_spec.flavor = "debugmodel";
  c.hf_assets_path = ".";
  c.training.steps = 10;
  c.training.seq_len = 128;
  c.lr_scheduler->warmup_steps = 2;
  return c;
}

inline ConfigRegistry test_registry() {
  ConfigRegistry registry;
  registry.add("llama3", "llama3_debugmodel", test_recipe, "tiny model");
  registry.add("llama3", "llama3_8b", test_recipe, "8 billion parameters");
  registry.add(
      "qwen3", "qwen3_broken", []() -> TrainerConfig { throw Error("no such flavor: 'x'"); },
      "throws");
  registry.add_alias("llama", "llama3");
  return registry;
}

// Words of a line separated by single spaces.
inline std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> out;
  size_t begin = 0;
  while (begin < line.size()) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    if (end > begin) out.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

inline CommandLine parse(const std::string& options) {
  return parse_command_line(words("--module llama3 --config llama3_debugmodel " + options),
                            test_registry());
}

}  // namespace rhea::config
