// The text before and after, and what is said about it.
#include "rhea/models/hf/override_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json.h"

namespace rhea::models::hf {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

json overridden(const char* text, const HfOverridesConfig& overrides) {
  return parse_json(override_config(text, "config.json", overrides).json);
}

TEST(OverrideConfig, WithoutNumbersTheTextIsTheSame) {
  const char* text = "{\"hidden_size\" : 64 , \"n\":1e-6}";
  const auto made = override_config(text, "config.json", {});
  EXPECT_EQ(made.json, text);
  EXPECT_THAT(made.replaced, testing::IsEmpty());
}

TEST(OverrideConfig, SaysWhatItReplacedAndNothingElseChanges) {
  HfOverridesConfig o;
  o.dim = 256;
  o.n_heads = 16;  // the same as before
  o.n_kv_heads = 4;
  const char* text = R"({"hidden_size": 64, "num_attention_heads": 16, "head_dim": 128,
                         "rms_norm_eps": 1e-6})";
  const auto made = override_config(text, "config.json", o);
  EXPECT_EQ(parse_json(made.json),
            parse_json(R"({"hidden_size": 256, "num_attention_heads": 16, "head_dim": 128,
                            "rms_norm_eps": 1e-6, "num_key_value_heads": 4})"));
  EXPECT_THAT(made.replaced,
              ElementsAre("hidden_size 64 -> 256", "num_key_value_heads absent -> 4"));
}

// A number under two names would be two numbers.
TEST(OverrideConfig, KeepsTheSpellingOfTheFile) {
  HfOverridesConfig o;
  o.dim = 32, o.n_layers = 3, o.n_heads = 4, o.norm_eps = 1e-3;
  EXPECT_EQ(
      overridden(
          R"({"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2, "layer_norm_epsilon": 1e-5})",
          o),
      parse_json(R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 3, "n_head": 4,
                            "layer_norm_epsilon": 1e-3})"));
  EXPECT_EQ(overridden(R"({"model_type": "mpt", "d_model": 8, "n_layers": 1, "n_heads": 2})", o),
            parse_json(R"({"model_type": "mpt", "d_model": 32, "n_layers": 3, "n_heads": 4,
                            "layer_norm_epsilon": 1e-3})"));
  o = {};
  o.num_experts = 6;
  EXPECT_EQ(overridden(R"({"model_type": "dots1", "n_routed_experts": 4, "num_experts": 4})", o),
            parse_json(R"({"model_type": "dots1", "n_routed_experts": 6, "num_experts": 6})"));
  EXPECT_EQ(overridden(R"({"model_type": "mixtral", "num_experts": 4})", o),
            parse_json(R"({"model_type": "mixtral", "num_experts": 6})"));
}

TEST(OverrideConfig, ListsWithAnEntryPerLayerAreCut) {
  HfOverridesConfig o;
  o.n_layers = 2;
  const char* text = R"({"num_hidden_layers": 3, "no_rope_layers": [1, 1, 0],
                         "layer_types": ["a", "b", "c"]})";
  const auto made = override_config(text, "config.json", o);
  EXPECT_EQ(parse_json(made.json), parse_json(R"({"num_hidden_layers": 2,
    "no_rope_layers": [1, 1], "layer_types": ["a", "b"]})"));
  EXPECT_THAT(made.replaced, testing::Contains("layer_types: the first 2 of 3"));
}

// Without an object of settings these take one of the class, whose theta goes before that of a
// file.
TEST(OverrideConfig, ThetaReplacesThatOfTheClass) {
  HfOverridesConfig o;
  o.rope_theta = 5e6;
  for (const char* text : {R"({"model_type": "apertus"})", R"({"model_type": "apertus",
                           "rope_theta": 1e3, "rope_scaling": null})"}) {
    const json made = overridden(text, o);
    EXPECT_EQ(made["rope_parameters"]["rope_theta"], 5e6) << made;
    EXPECT_EQ(made["rope_parameters"]["rope_type"], "llama3") << made;
  }
  EXPECT_EQ(overridden(R"({"model_type": "gpt_oss"})", o)["rope_theta"], 5e6);
}

// W6, and its reverse: theta and the scaling do not touch each other.
TEST(OverrideConfig, ThetaLeavesTheScalingAlone) {
  HfOverridesConfig o;
  o.rope_theta = 5e6;
  EXPECT_EQ(overridden(R"({"rope_parameters": {"rope_theta": 1e6, "rope_type": "yarn",
                           "factor": 4}})",
                       o),
            parse_json(R"({"rope_parameters": {"rope_theta": 5e6, "rope_type": "yarn",
                            "factor": 4}})"));
  EXPECT_EQ(
      overridden(R"({"rope_theta": 1e6, "rope_scaling": {"type": "linear", "factor": 4}})", o),
      parse_json(R"({"rope_theta": 5e6, "rope_scaling": {"type": "linear",
                            "factor": 4}})"));
  EXPECT_EQ(overridden(R"({"rope_parameters": {"rope_type": "default"}})", o),
            parse_json(R"({"rope_parameters": {"rope_type": "default", "rope_theta": 5e6}})"));
  EXPECT_EQ(overridden(R"({"model_type": "gpt_neox", "rotary_emb_base": 1e4})", o),
            parse_json(R"({"model_type": "gpt_neox", "rotary_emb_base": 5e6})"));
  EXPECT_EQ(overridden("{}", o), parse_json(R"({"rope_theta": 5e6})"));
  // The number of sliding layers and that of full ones: one option cannot mean both.
  EXPECT_THAT(
      [&] {
        overridden(R"({"rope_parameters": {"full_attention": {"rope_theta": 1e6},
                       "sliding_attention": {"rope_theta": 1e4}}})",
                   o);
      },
      ThrowsMessage<Error>(HasSubstr("a rope_theta for each kind of layer")));
}

// What is wrong with them is for the reader of the file to say.
TEST(OverrideConfig, FieldsOfAWrongTypeAreNoObstacle) {
  HfOverridesConfig o;
  o.rope_theta = 5e6, o.n_layers = 1;
  for (const char* text : {R"({"rope_parameters": true, "layer_types": 3})",
                           R"({"rope_scaling": [1], "layer_types": "x", "model_type": 4})"})
    EXPECT_EQ(overridden(text, o).at("rope_theta"), 5e6) << text;
}

TEST(OverrideConfig, RefusesWhatIsNoObject) {
  for (const char* text : {"", "[]", "{", "3", "\"x\""})
    EXPECT_THAT([&] { override_config(text, "config.json", {}); },
                ThrowsMessage<Error>(HasSubstr("config.json")))
        << text;
}

}  // namespace
}  // namespace rhea::models::hf
