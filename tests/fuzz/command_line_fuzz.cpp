// Fuzz target: the command line of a run, one word a line. Never throws: what is wrong stands in
// the report.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "recipes/recipes.h"
#include "rhea/config/command_line.h"
#include "rhea/config/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const rhea::config::ConfigRegistry registry = rhea::recipes::builtin_registry();
  std::istringstream stream(std::string(reinterpret_cast<const char*>(data), size));
  std::vector<std::string> words;
  for (std::string word; std::getline(stream, word);) words.push_back(word);
  const rhea::config::CommandLine line = rhea::config::parse_command_line(words, registry);
  if (line.has_recipe) rhea::config::validate(line.config, {});
  return 0;
}
