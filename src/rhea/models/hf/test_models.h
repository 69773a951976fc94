// Small models of every row of the table, for tests.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "rhea/base/error.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/models/hf/override_config.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {

inline nn::Decoder::Config decoder_of(const nlohmann::json& config,
                                      const HfOverridesConfig& overrides = {}) {
  const auto text = override_config(config.dump(), "config.json", overrides).json;
  return parse_config(text, "config.json").decoder;
}

// A small model of any row: its class defaults in other sizes.
inline nlohmann::json small(std::string_view model_type) {
  const Row& row = find_row(model_type);
  nlohmann::json config = {{"model_type", model_type}};
  const auto set = [&](std::string_view name, int64_t value) {
    config[std::string(row.spelling(name))] = value;
  };
  set("hidden_size", 64);
  set("num_hidden_layers", 4);
  set("num_attention_heads", 4);
  // Of these every query head has its own keys, and the last two derive the width.
  const std::set<std::string_view> kWithoutGroups = {
      "gpt2", "gpt_bigcode", "gpt_neox", "persimmon", "gptj", "codegen", "opt", "bloom", "mpt"};
  if (!kWithoutGroups.contains(model_type)) set("num_key_value_heads", 2);
  if (model_type != "bloom" && model_type != "mpt") set("intermediate_size", 96);
  set("vocab_size", 100);
  if (model_type == "gptj" || model_type == "codegen" || model_type == "phi-msft")
    config["rotary_dim"] = 8;
  // Of these Transformers has no default that makes a model.
  if (model_type == "deepseek_v2" || model_type == "dots1") {
    set("num_experts", 4);
    config["num_experts_per_tok"] = 2;
  }
  return config;
}

inline void expect_refused(nlohmann::json config, const std::string& field,
                           const nlohmann::json& value, const std::string& expected) {
  config[field] = value;
  EXPECT_THAT([&] { decoder_of(config); },
              testing::ThrowsMessage<Error>(
                  testing::AllOf(testing::HasSubstr("config.json"), testing::HasSubstr(expected))))
      << config.dump();
}

}  // namespace rhea::models::hf
