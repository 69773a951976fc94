// Rotary settings of config.json: what Transformers makes of them in each spelling.
#include "rhea/models/hf/rope.h"

#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/models/decoder_sizes.h"
#include "rhea/models/hf/test_models.h"
#include "rhea/models/parts.h"
#include "rhea/nn/rope_tables.h"

namespace rhea::models::hf {
namespace {

using nlohmann::json;
using testing::HasSubstr;

nn::RopeSpec rope_of_layer(const nn::Decoder::Config& model, size_t layer) {
  nn::TransformerBlock::Config block = *model.layers.at(layer);
  return attention_of(block).rope->spec();
}

void expect_row(const nn::RopeSpec& spec, int64_t length, const json& expected) {
  const auto half = static_cast<size_t>(spec.rotary_dim / 2);
  std::vector<float> cos(static_cast<size_t>(length) * half), sin(cos.size());
  nn::fill_tables(spec, length, length, cos.data(), sin.data());
  ASSERT_EQ(half, expected.at("cos").size());
  for (size_t i = 0; i < half; ++i) {
    const size_t at = static_cast<size_t>(length - 1) * half + i;
    EXPECT_NEAR(cos[at], expected.at("cos")[i].get<double>(), 3e-6) << "pair " << i;
    EXPECT_NEAR(sin[at], expected.at("sin")[i].get<double>(), 3e-6) << "pair " << i;
  }
}

// The row of the last position (tools/goldens/make_ropes.py); or, never silently another one, an
// error.
TEST(Rope, EverySpellingTurnsAsInTransformers) {
  const auto cases = parse_json(read_file(RHEA_SOURCE_DIR "/tests/data/golden/ropes.json"));
  ASSERT_GT(cases.size(), 100U);
  for (const json& one : cases) {
    SCOPED_TRACE(one.at("config").dump());
    auto model = decoder_of(one.at("config"));
    const bool layered = one.at("rows").contains("sliding_attention");

    // layer.
    for (size_t layer = 0; layer < model.layers.size(); ++layer) {
      const auto& attention = attention_of(*model.layers[layer]);
      if (!attention.rope) continue;
      const bool sliding = layered && attention.sliding_window > 0;
      expect_row(rope_of_layer(model, layer), one.at("length").get<int64_t>(),
                 one.at("rows").at(sliding ? "sliding_attention" : "full_attention"));
    }
  }
}

// The two spellings of rotary settings, also per layer type.
TEST(Rope, SpellingsOfPerLayerRope) {
  json v4 = small("gemma3_text"), v5 = v4;
  v4["rope_theta"] = 1e5;
  v4["rope_local_base_freq"] = 100.0;
  v4["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 4.0}};
  v5["rope_parameters"] = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 1e5}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 100.0}}}};
  EXPECT_THAT(tree_differences(decoder_of(v4), decoder_of(v5)), testing::IsEmpty());
  EXPECT_EQ(rope_of_layer(decoder_of(v4), 0).theta, 100);
  json both = v5;
  both["rope_scaling"] = v4["rope_scaling"];
  EXPECT_THROW(decoder_of(both), Error);
  v5["rope_parameters"]["sliding_attention"]["colour"] = "red";
  EXPECT_THAT([&] { decoder_of(v5); }, testing::ThrowsMessage<Error>(HasSubstr("colour")));
}

TEST(Rope, Settings) {
  const auto rope = [](json settings) {
    json config = small("llama");
    config["rope_scaling"] = std::move(settings);
    return rope_of(decoder_of(config)).spec();
  };
  // Null and absent are plain rotation.
  EXPECT_EQ(rope(nullptr), rope_of(decoder_of(small("llama"))).spec());
  EXPECT_EQ(rope({{"type", "linear"}, {"factor", 2.0}}),
            rope({{"rope_type", "linear"}, {"factor", 2.0}}));
  json config = small("llama");
  expect_refused(config, "rope_scaling", {{"rope_type", "spiral"}}, "spiral");
  expect_refused(config, "rope_scaling", {{"rope_type", "linear"}}, "factor is missing");
  expect_refused(config, "rope_scaling", {{"rope_type", "dynamic"}}, "factor is missing");
  expect_refused(config, "rope_scaling",
                 {{"rope_type", "llama3"},
                  {"factor", 8.0},
                  {"high_freq_factor", 4.0},
                  {"original_max_position_embeddings", 64}},
                 "low_freq_factor is missing");
  expect_refused(config, "rope_scaling",
                 {{"rope_type", "longrope"}, {"short_factor", {1.0}}, {"long_factor", {1.0}}},
                 "8 short and long factors, got 1 and 1");
  expect_refused(config, "rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}, {"knob", 1}},
                 "knob");
  expect_refused(config, "partial_rotary_factor", 1.5, "partial_rotary_factor");
  expect_refused(config, "partial_rotary_factor", 0.001, "rotated dims");
}

// theta * alpha^(R/(R-2)), for every length.
TEST(Rope, HunYuansDynamicIsAFixedTheta) {
  json config = small("hunyuan_v1_dense");
  config["head_dim"] = 128;
  config["rope_scaling"] = {{"type", "dynamic"}, {"alpha", 1000.0},       {"factor", 1.0},
                            {"mscale", 1.0},     {"mscale_all_dim", 1.0}, {"beta_fast", 32}};
  const auto spec = rope_of(decoder_of(config)).spec();
  EXPECT_NEAR(spec.theta, 11158839.925, 1e-2);
  EXPECT_FALSE(spec.depends_on_length());
  config["rope_scaling"].erase("alpha");
  config["rope_scaling"]["factor"] = 2.0;
  EXPECT_THAT([&] { decoder_of(config); }, testing::ThrowsMessage<Error>(HasSubstr("mscale")));
  expect_refused(small("hunyuan_v1_dense"), "rope_scaling", {{"type", "dynamic"}, {"alpha", 0}},
                 "alpha must be above 0");
}

}  // namespace
}  // namespace rhea::models::hf
