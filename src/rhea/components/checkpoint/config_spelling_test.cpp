// Both spellings of the golden configs turn into each other.
#include "rhea/components/checkpoint/config_spelling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "tests/support/error_of.h"

namespace rhea::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using support::error_of;
using testing::HasSubstr;

json spelled(const json& config, ConfigSpelling spelling) {
  return parse_json(spell_config(config.dump(), "config.json", spelling, DType::bf16));
}

// What only says how a config was saved, or says rope_type by its older name.
json without_names(json config) {
  for (const char* name : {"dtype", "torch_dtype", "transformers_version"}) config.erase(name);
  // Transformers wrote its own models of these families with another field for the same number.
  if (config.contains("num_local_experts") && config["model_type"] == "qwen3_moe") {
    config["num_experts"] = config["num_local_experts"];
    config.erase("num_local_experts");
  }
  for (const char* place : {"rope_scaling", "rope_parameters"}) {
    if (!config.contains(place) || !config[place].is_object()) continue;
    if (!config[place].contains("rope_type") && config[place].contains("type"))
      config[place]["rope_type"] = config[place]["type"];
    config[place].erase("type");
  }
  return config;
}

TEST(ConfigSpelling, GoldenConfigsTurnIntoEachOther) {
  const fs::path golden = fs::path(RHEA_SHARED_DIR) / "data/golden/models";
  if (!fs::is_directory(golden)) GTEST_SKIP() << golden << " is not there";
  int count = 0;
  for (const auto& entry : fs::directory_iterator(golden)) {
    json v5 = parse_json(read_file(entry.path() / "config.json"));
    // It repeats rotary settings at a level that nobody reads.
    if (entry.path().filename() == "olmo3")
      for (const char* name : {"rope_theta", "rope_type"}) v5["rope_parameters"].erase(name);
    const json v4 = parse_json(read_file(entry.path() / "config_v4.json"));
    EXPECT_EQ(without_names(spelled(v5, ConfigSpelling::v4)), without_names(v4)) << entry.path();
    EXPECT_EQ(without_names(spelled(v4, ConfigSpelling::v5)), without_names(v5)) << entry.path();
    EXPECT_EQ(without_names(spelled(v5, ConfigSpelling::v5)), without_names(v5)) << entry.path();
    EXPECT_EQ(without_names(spelled(v4, ConfigSpelling::v4)), without_names(v4)) << entry.path();
    ++count;
  }
  EXPECT_GT(count, 50);
}

// The classes of these have a scaling where the file says nothing, so plain rotation must be said.
TEST(ConfigSpelling, PlainRotationIsSaidWhereTheClassScales) {
  for (const char* type : {"apertus", "cwm", "gpt_oss"}) {
    const json plain = {{"model_type", type},
                        {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e3}}}};
    const json v4 = spelled(plain, ConfigSpelling::v4);
    EXPECT_EQ(v4["rope_scaling"], json({{"rope_type", "default"}})) << type;
    EXPECT_EQ(v4["rope_theta"], 1e3);
    EXPECT_EQ(spelled(v4, ConfigSpelling::v5)["rope_parameters"], plain["rope_parameters"]);
    // A theta alone does not make an object of settings, which would end the scaling.
    const json of_class = {{"model_type", type}, {"rope_theta", 1e3}};
    EXPECT_FALSE(spelled(of_class, ConfigSpelling::v5).contains("rope_parameters")) << type;
  }
  const json llama = {{"model_type", "llama"}, {"rope_parameters", {{"rope_theta", 1e3}}}};
  EXPECT_TRUE(spelled(llama, ConfigSpelling::v4)["rope_scaling"].is_null());
}

// theta and scaling of version 4 are those of full attention.
TEST(ConfigSpelling, LayersWithAWindowHaveAnObjectOfTheirOwn) {
  const json olmo3 = {{"model_type", "olmo3"},
                      {"rope_theta", 1e3},
                      {"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}}};
  const json v5 = spelled(olmo3, ConfigSpelling::v5);
  EXPECT_EQ(v5["rope_parameters"]["full_attention"],
            json({{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 1e3}}));
  EXPECT_EQ(v5["rope_parameters"]["sliding_attention"],
            json({{"rope_type", "default"}, {"rope_theta", 5e5}}));
  const json gemma = {{"model_type", "gemma3_text"}, {"rope_theta", 1e3}};
  EXPECT_EQ(
      spelled(gemma, ConfigSpelling::v5)["rope_parameters"]["sliding_attention"]["rope_theta"],
      1e4);
  json other = v5;
  other["rope_parameters"]["sliding_attention"]["rope_theta"] = 7.0;
  EXPECT_THAT(error_of([&] { spelled(other, ConfigSpelling::v4); }),
              HasSubstr("version 4 can only say 500000"));
}

TEST(ConfigSpelling, DtypeIsStatedAndQuantizationIsNot) {
  const json config = {{"model_type", "llama"},
                       {"torch_dtype", "float32"},
                       {"quantization_config", {{"quant_method", "fp8"}}}};
  const json v5 = spelled(config, ConfigSpelling::v5);
  EXPECT_EQ(v5["dtype"], "bfloat16");
  EXPECT_EQ(v5["torch_dtype"], "bfloat16");
  EXPECT_FALSE(v5.contains("quantization_config"));
  EXPECT_FALSE(spelled(v5, ConfigSpelling::v4).contains("dtype"));
}

// Texts as people and programs write them; every other field comes out with the value it had.
TEST(ConfigSpelling, OtherFieldsKeepTheirValuesAndTheirOrder) {
  const char* text = R"({"model_type": "llama", "z": 1e-05, "eos_token_id": [1, 2],
 "big": 9007199254740993, "tiny": 2.2250738585072014e-308, "text": "\u00e9\n", "none": null,
 "a": {"b": [[], {}]}, "third": 0.3333333333333333, "rope_theta": 10000})";
  for (const ConfigSpelling spelling : {ConfigSpelling::v4, ConfigSpelling::v5}) {
    const std::string made = spell_config(text, "config.json", spelling, DType::f32);
    const json before = parse_json(text), after = parse_json(made);
    for (const auto& [name, value] : before.items()) {
      if (name == "rope_theta") continue;
      EXPECT_EQ(after.at(name), value) << name;
    }
    EXPECT_LT(made.find("\"z\""), made.find("\"a\""));
    EXPECT_THAT(made, HasSubstr("9007199254740993"));
    EXPECT_EQ(spell_config(made, "config.json", spelling, DType::f32), made);
  }
}

TEST(ConfigSpelling, BrokenTextsGiveAnErrorThatNamesTheFile) {
  for (const char* text :
       {"", "{", "[]", "null", "3", "{\"a\": 1,}", "{\"a\": NaN}", "\xff", "{\"a\": \"\xff\"}",
        R"({"rope_parameters": [1]})", R"({"rope_parameters": {"rope_type": 3}})",
        R"({"model_type": "gemma3_text", "rope_parameters": {"full_attention": 5}})",
        R"({"model_type": "gemma3_text", "rope_parameters": {"sliding_attention": [1]}})",
        R"({"model_type": 7, "rope_parameters": {"rope_theta": 1.0}})"}) {
    const std::string error =
        error_of([&] { spell_config(text, "x/config.json", ConfigSpelling::v4, DType::f32); });
    EXPECT_THAT(error, HasSubstr("x/config.json")) << text;
    EXPECT_THAT(error, testing::Not(HasSubstr("json.exception"))) << text;
  }
  EXPECT_THAT(error_of([] {
                spell_config(std::string(100'000, '['), "x/config.json", ConfigSpelling::v5,
                             DType::f32);
              }),
              HasSubstr("x/config.json"));
}

TEST(ConfigSpelling, WhatCannotBeSaidIsRefused) {
  const auto error = [](const char* text, ConfigSpelling spelling) {
    return error_of([&] { spell_config(text, "x/config.json", spelling, DType::f32); });
  };
  EXPECT_THAT(error("[]", ConfigSpelling::v5), HasSubstr("x/config.json is not a JSON object"));
  EXPECT_THAT(error(R"({"rope_parameters":{"rope_theta":1},"rope_scaling":{"type":"linear"}})",
                    ConfigSpelling::v5),
              HasSubstr("both given"));
  EXPECT_THAT(error(R"({"rope_scaling":[1]})", ConfigSpelling::v5), HasSubstr("not an object"));
  EXPECT_THAT(error(R"({"model_type":"gemma3_text",
                        "rope_parameters":{"sliding_attention":{"rope_type":"linear"}}})",
                    ConfigSpelling::v4),
              HasSubstr("version 4 cannot say"));
  EXPECT_THAT(error(R"({"rope_scaling":{"rope_type":3},"model_type":7})", ConfigSpelling::v5),
              HasSubstr("x/config.json"));
  EXPECT_THAT(error_of([] { parse_config_spelling("v3"); }), HasSubstr("'v3'"));
}

}  // namespace
}  // namespace rhea::checkpoint
