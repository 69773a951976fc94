// What the log says was taken from the class was, and nothing else was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/config/json.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Everything that a config.json decides here, or the words it is refused with.
std::string outcome(const json& config) {
  try {
    const PublishedConfig parsed = parse_config(config.dump(), "config.json");
    std::string text = config::to_json(parsed.decoder);
    for (const std::string& warning : parsed.notes.warnings) text += warning + "\n";
    return text;
  } catch (const Error& error) {
    return error.what();
  }
}

bool is_refused(const std::string& outcome) { return outcome.starts_with("config.json: "); }

// Any other value of the type.
json other_than(const json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>() * 2 + 2;
  if (value.is_number()) return value.get<double>() * 0.5 + 0.125;
  if (value.is_string()) return "other";
  return {};
}

class Defaults : public testing::TestWithParam<const char*> {
 protected:
  // Calls check(config, where) for each golden model's file in this spelling.
  static void for_each_file(const std::function<void(const json&, const std::string&)>& check) {
    int num_files = 0;
    for (const auto& folder : fs::directory_iterator(RHEA_SOURCE_DIR "/tests/data/golden/models")) {
      const fs::path file = folder.path() / GetParam();
      check(parse_json(read_file(file)), file.string());
      ++num_files;
    }
    EXPECT_GT(num_files, 80);
  }
  static std::set<std::string> noted(const json& config) {
    std::set<std::string> names;
    for (const auto& note : parse_config(config.dump(), "config.json").notes.defaulted)
      names.insert(note.substr(0, note.find(' ')));
    return names;
  }
};

// A field that was noted makes no difference when it is written into the file; another value of it
// makes another model, a warning or an error.
TEST_P(Defaults, WhatIsNotedCounts) {
  for_each_file([](const json& config, const std::string& where) {
    const std::string as_it_is = outcome(config);
    const json defaults = parse_json(find_row(config.at("model_type").get<std::string>()).defaults);
    for (const std::string& name : noted(config)) {
      json changed = config;
      changed[name] = defaults.at(name);
      EXPECT_EQ(outcome(changed), as_it_is) << where << ": " << name << " was not taken";
      changed[name] = other_than(defaults.at(name));
      EXPECT_NE(outcome(changed), as_it_is) << where << ": " << name << " has no effect";
    }
  });
}

// Another value of a field that was not noted makes no other model without a word.
TEST_P(Defaults, WhatCountsIsNoted) {
  for_each_file([](const json& config, const std::string& where) {
    const std::string as_it_is = outcome(config);
    const auto names = noted(config);
    const json defaults = parse_json(find_row(config.at("model_type").get<std::string>()).defaults);
    for (const auto& [name, value] : defaults.items()) {
      if (names.contains(name) || config.contains(name) || value.is_null()) continue;
      json changed = config;
      changed[name] = other_than(value);
      const std::string then = outcome(changed);
      EXPECT_TRUE(is_refused(then) || then == as_it_is)
          << where << ": " << name << " = " << value << " was taken without a note";
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Spellings, Defaults, testing::Values("config.json", "config_v4.json"),
                         [](const auto& test) {
                           return std::string(test.param) == "config.json" ? "v5" : "v4";
                         });

}  // namespace
}  // namespace rhea::models::hf
