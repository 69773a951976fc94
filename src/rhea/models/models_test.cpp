// Sizes of every flavor, key rules, config.json in both spellings.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "rhea/base/error.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/models/llama3/llama3.h"
#include "rhea/models/model_size.h"
#include "rhea/models/qwen3/qwen3.h"
#include "rhea/models/registry.h"

namespace rhea::models {
namespace {

ModelSize size_of(const ModelSpec& spec, int64_t seq_len) {
  ir::Graph graph;
  nn::Trace trace(graph, {.num_tokens = seq_len, .seq_len = seq_len});
  const auto& model = decoder(spec);
  nn::language_model_loss(trace, model, 8);
  return model_size(model, trace.parameters(), seq_len);
}

struct Published {
  std::string flavor;
  int64_t parameters, flops, seq_len;
};

TEST(Models, Llama3FlavorsHaveThePublishedSizes) {
  for (const auto& [flavor, parameters, flops, seq_len] :
       {Published{"debugmodel", 6163712, 71585280, 2048},
        {"1B", 1235814400, 10636111872, 8192},
        {"3B", 3212749824, 27732215808, 8192},
        {"8B", 8030261248, 57914449920, 8192},
        {"70B", 70553706496, 481442709504, 8192},
        {"405B", 405853388800, 2625449459712, 8192}}) {
    const auto size = size_of(llama3::model_registry(flavor), seq_len);
    EXPECT_EQ(size.num_parameters, parameters) << flavor;
    EXPECT_EQ(size.flops_per_token, flops) << flavor;
  }
}

TEST(Models, Qwen3FlavorsHaveThePublishedSizes) {
  for (const auto& [flavor, parameters, flops, seq_len] :
       {Published{"debugmodel", 31987968, 594580992, 2048},
        {"debugmodel_non_fused_qkv", 31987968, 594580992, 2048},
        {"0.6B", 596049920, 6394871808, 4096},
        {"1.7B", 1720574976, 13142022144, 4096},
        {"4B", 4022468096, 31382565888, 4096},
        {"8B", 8190735360, 52658190336, 4096},
        {"14B", 14768307200, 94008698880, 4096},
        {"32B", 32762123264, 217675069440, 4096}}) {
    const auto size = size_of(qwen3::model_registry(flavor), seq_len);
    EXPECT_EQ(size.num_parameters, parameters) << flavor;
    EXPECT_EQ(size.flops_per_token, flops) << flavor;
  }
}

struct PublishedMoe {
  std::string flavor;
  int64_t parameters, active, flops, seq_len;
};

TEST(Models, Qwen3MoeFlavorsHaveThePublishedSizes) {
  for (const auto& [flavor, parameters, active, flops, seq_len] :
       {PublishedMoe{"debugmodel_moe", 315758848, 51517696, 1111266816, 4096},
        {"30B-A3B", 30532122624, 3353032704, 27914883072, 4096},
        {"30B-A3B", 30532122624, 3353032704, 37578559488, 8192},
        {"235B-A22B", 235093634560, 22190763520, 167260001280, 4096}}) {
    const auto size = size_of(qwen3::model_registry(flavor), seq_len);
    EXPECT_EQ(size.num_parameters, parameters) << flavor;
    EXPECT_EQ(size.num_active, active) << flavor;
    EXPECT_EQ(size.flops_per_token, flops) << flavor;
  }
}

TEST(Models, AFlavorCanBeCut) {
  auto sizes = qwen3::flavor_sizes("30B-A3B");
  sizes.n_layers = 4;
  sizes.experts.num_experts = 64;
  sizes.experts.top_k = 4;
  const auto spec = qwen3::make_spec("cut", sizes, qwen3::flavor_rope("30B-A3B"), "sdpa");
  const auto size = size_of(spec, 4096);
  EXPECT_EQ(size.num_parameters, 1906330624);
  EXPECT_EQ(size.num_active, 773868544);
  EXPECT_EQ(size.flops_per_token, 3581528064);
}

TEST(Models, UnknownFlavorAndBackendListWhatThereIs) {
  EXPECT_THAT([] { llama3::model_registry("9B"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("405B")));
  EXPECT_THAT([] { qwen3::model_registry("4B", "flash"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("sdpa")));
  EXPECT_THAT([] { qwen3::model_registry("30B-A3B", "flex", true, "deepep2"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("minimal_async_ep")));
  EXPECT_THAT([] { qwen3::model_registry("30B-A3B", "flex", true, "deepep"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("use standard")));
}

TEST(Models, KeyRulesGiveEveryTensorANameOfItsOwn) {
  for (const auto& spec :
       {llama3::model_registry("debugmodel"), qwen3::model_registry("debugmodel"),
        qwen3::model_registry("debugmodel_moe")}) {
    const auto rules = find_family(spec.name).key_rules;
    ir::Graph graph;
    nn::Trace trace(graph, {.num_tokens = 8, .seq_len = 8});
    nn::language_model_loss(trace, decoder(spec), 8);
    std::set<std::string> names;
    auto all = trace.parameters();
    all.insert(all.end(), trace.constants().begin(), trace.constants().end());
    for (const auto& parameter : all) {
      for (const auto& part : parameter.parts) {
        const auto hf = to_hf(rules, part.fqn);
        ASSERT_TRUE(hf.has_value()) << part.fqn;
        EXPECT_TRUE(names.insert(hf->name).second) << part.fqn << " is also called " << hf->name;
      }
    }
  }
  EXPECT_FALSE(to_hf(llama3::key_rules(), "layers.x.ffn_norm.weight").has_value());
  const auto experts =
      to_hf(qwen3::key_rules(), "layers.7.moe.routed_experts.inner_experts.w3_EFD");
  ASSERT_TRUE(experts.has_value());
  EXPECT_EQ(experts->form, KeyForm::sliced);
  EXPECT_EQ(experts->slice(12), "model.layers.7.mlp.experts.12.up_proj.weight");
}

constexpr const char* kSmall = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
  "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 100)";

TEST(ConfigJson, BothSpellingsGiveTheSameRope) {
  const auto v4 = hf::parse_config(
      std::string(kSmall) +
          R"(, "rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 4}})",
      "v4");
  const auto v5 = hf::parse_config(
      std::string(kSmall) +
          R"(, "rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 4}})",
      "v5");
  EXPECT_EQ(rope_of(v4.decoder).spec(), rope_of(v5.decoder).spec());
  EXPECT_EQ(rope_of(v4.decoder).factor, 4);
}

TEST(ConfigJson, WhatIsWrittenReadsBackToTheSameModel) {
  for (const auto& spec : {llama3::model_registry("1B"), llama3::model_registry("debugmodel"),
                           qwen3::model_registry("4B"), qwen3::model_registry("30B-A3B")}) {
    const auto& model = decoder(spec);
    const auto read = hf::parse_config(hf::write_config(model), "config.json");
    const DecoderSizes ours = sizes_of(model), theirs = sizes_of(read.decoder);
    EXPECT_EQ(read.model_type, spec.flavor == "30B-A3B" ? "qwen3_moe"
                               : spec.name == "qwen3"   ? "qwen3"
                                                        : "llama");
    EXPECT_EQ(theirs.experts.num_experts, ours.experts.num_experts);
    EXPECT_EQ(theirs.experts.top_k, ours.experts.top_k);
    EXPECT_TRUE(hf::differences(model, read).empty());
    EXPECT_EQ(theirs.dim, ours.dim);
    EXPECT_EQ(theirs.n_layers, ours.n_layers);
    EXPECT_EQ(theirs.n_heads, ours.n_heads);
    EXPECT_EQ(theirs.n_kv_heads, ours.n_kv_heads);
    EXPECT_EQ(theirs.head_dim, ours.head_dim);
    EXPECT_EQ(theirs.hidden_dim, ours.hidden_dim);
    EXPECT_EQ(theirs.vocab_size, ours.vocab_size);
    EXPECT_EQ(theirs.tied, ours.tied);
    EXPECT_EQ(theirs.norm_eps, ours.norm_eps);
    EXPECT_EQ(rope_of(read.decoder).spec(), rope_of(model).spec());
  }
}

TEST(ConfigJson, NamesTheFieldThatIsWrong) {
  const auto message = [](const std::string& rest, const std::string& expected) {
    EXPECT_THAT([&] { hf::parse_config(std::string(kSmall) + rest + "}", "config.json"); },
                testing::ThrowsMessage<Error>(testing::HasSubstr(expected)))
        << rest;
  };
  message(R"(, "frobnicate": 1)", "frobnicate = 1");
  message(R"(, "hidden_act": "mish")", "hidden_act 'mish'");
  message(R"(, "num_key_value_heads": 3)", "num_key_value_heads (3)");
  message(
      R"(, "rope_theta": 1e4, "rope_scaling": {"rope_type": "linear", "rope_theta": 2e4, "factor": 2})",
      "rope_theta");
  message(R"(, "rope_scaling": {"rope_type": "su"})", "'su'");
  message(R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8})",
          "original_max_position_embeddings");
  message(R"(, "rope_scaling": {"rope_type": "linear"})", "factor is missing");
  message(R"(, "rms_norm_eps": "small")", "rms_norm_eps");
  message(R"(, "architectures": ["Qwen3ForCausalLM"])", "LlamaForCausalLM");
  message(R"(, "rope_scaling": {"rope_type": "su"})", "config.json: rope_scaling");
  EXPECT_THROW(hf::parse_config("[]", "x"), Error);
  EXPECT_THROW(hf::parse_config("{", "x"), Error);
  EXPECT_THAT([] { hf::parse_config(R"({"model_type": "mamba"})", "x"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("qwen3")));
}

// Numbers that JSON allows and no model has: refused by name before anything is built from them.
TEST(ConfigJson, RefusesNumbersThatNoModelHas) {
  const auto refused = [](const std::string& rest, const std::string& expected) {
    EXPECT_THAT([&] { hf::parse_config(std::string(kSmall) + rest + "}", "config.json"); },
                testing::ThrowsMessage<Error>(testing::AllOf(testing::HasSubstr("config.json"),
                                                             testing::HasSubstr(expected))))
        << rest;
  };
  for (const char* size :
       {"0", "-1", "0.5", "1e30", "4611686018427387904", "18446744073709551615"}) {
    for (const char* name :
         {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
          "intermediate_size", "vocab_size", "head_dim", "max_position_embeddings"})
      refused(fmt::format(R"(, "{}": {})", name, size), name);
  }
  refused(R"(, "hidden_size": 1048576, "intermediate_size": 1048576, "num_hidden_layers": 10000)",
          "parameters, more than any machine holds");
  for (const char* eps : {"-1e-6", "2", "1e308"})
    refused(fmt::format(R"(, "rms_norm_eps": {})", eps), "rms_norm_eps");
  refused(R"(, "rope_theta": 1e-300)", "radians");
  const auto scaling = [&](const std::string& rest, const std::string& expected) {
    refused(
        R"(, "rope_scaling": {"original_max_position_embeddings": 16, "rope_type": )" + rest + "}",
        expected);
  };
  const std::string factors = R"([1, 1, 1, 1, 1, 1, 1, 1])";
  scaling(R"("linear", "factor": 1e-300)", "radians");
  scaling(R"("llama3", "factor": 1e-300, "low_freq_factor": 1, "high_freq_factor": 4)", "radians");
  scaling(R"("yarn", "factor": 8, "beta_fast": -1)", "radians");
  scaling(R"("yarn", "factor": 8, "attention_factor": -1)", "multiply");
  scaling(R"("yarn", "factor": 8, "attention_factor": 1e308)", "multiply");
  scaling(R"("longrope", "factor": 2, "short_factor": [0, 0, 0, 0, 0, 0, 0, 0], "long_factor": )" +
              factors,
          "radians");
  scaling(R"("longrope", "factor": 2, "long_factor": [-1, 1, 1, 1, 1, 1, 1, 1], "short_factor": )" +
              factors,
          "radians");
  scaling(R"("dynamic", "factor": -2)", "factor");
}

TEST(ConfigJson, RefusesDeepNesting) {
  constexpr int kDepth = 300'000;  // a recursive walk over it runs out of stack
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  for (const char* name : {"hidden_act", "architectures", "id2label", "frobnicate"})
    EXPECT_THAT(
        [&] {
          hf::parse_config(fmt::format(R"({}, "{}": {}}})", kSmall, name, deep), "config.json");
        },
        testing::ThrowsMessage<Error>(testing::HasSubstr("nested")))
        << name;
}

// Every model that a config.json can describe has a name in published files for each of its
// parameters, so that an export at the end of a run cannot fail for want of one.
TEST(Models, EveryParameterOfEveryConfigHasAHuggingFaceName) {
  for (const char* type : {"llama", "qwen3"}) {
    for (const bool attention_bias : {false, true}) {
      for (const bool mlp_bias : {false, true}) {
        for (const bool tied : {false, true}) {
          for (const bool fused : {false, true}) {
            const bool qwen3 = std::string(type) == "qwen3";
            if (qwen3 && mlp_bias) continue;  // no such field
            std::string text = fmt::format(
                R"({{"model_type": "{}", "hidden_size": 64, "num_hidden_layers": 12,
  "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 100,
  "attention_bias": {}, "tie_word_embeddings": {})",
                type, attention_bias, tied);
            if (!qwen3) text += fmt::format(R"(, "mlp_bias": {})", mlp_bias);
            const auto published = hf::parse_config(text + "}", "config.json");
            DecoderSizes sizes = sizes_of(published.decoder);
            sizes.fuse_qkv = fused;
            const auto& rope = rope_of(published.decoder);
            const auto model = qwen3 ? qwen3::build(sizes, rope) : llama3::build(sizes, rope);
            const auto rules = find_family(qwen3 ? "qwen3" : "llama3").key_rules;
            ir::Graph graph;
            nn::Trace trace(graph, {.num_tokens = 8, .seq_len = 8});
            nn::language_model_loss(trace, model, 8);
            std::vector<std::string> names;
            for (const auto& parameter : trace.parameters()) {
              for (const auto& part : parameter.parts) {
                const auto hf = to_hf(rules, part.fqn);
                ASSERT_TRUE(hf.has_value()) << text << ": " << part.fqn;
                names.push_back(hf->name);
              }
            }
            // The same names as the model under Hugging Face's own.
            ir::Graph other;
            nn::Trace published_trace(other, {.num_tokens = 8, .seq_len = 8});
            nn::language_model_loss(published_trace, published.decoder, 8);
            std::vector<std::string> expected;
            for (const auto& parameter : published_trace.parameters())
              for (const auto& part : parameter.parts) expected.push_back(part.fqn);
            EXPECT_THAT(names, testing::UnorderedElementsAreArray(expected)) << text;
          }
        }
      }
    }
  }
}

// W21: every number that changes what the same weights compute.
TEST(ConfigJson, DifferencesNameEveryFieldThatChangesTheComputation) {
  const auto config = [](const std::string& rest) {
    return hf::parse_config(std::string(kSmall) + rest + "}", "config.json");
  };
  const auto llama3 = [](const char* low, const char* high, const char* original) {
    return fmt::format(R"(, "rope_scaling": {{"rope_type": "llama3", "factor": 8,
  "low_freq_factor": {}, "high_freq_factor": {}, "original_max_position_embeddings": {}}})",
                       low, high, original);
  };
  const auto yarn = [](const std::string& rest) {
    return R"(, "rope_scaling": {"rope_type": "yarn", "factor": 8,
  "original_max_position_embeddings": 256)" +
           rest + "}";
  };
  const auto longrope = [](const char* factors, const std::string& rest) {
    return fmt::format(R"(, "rope_scaling": {{"rope_type": "longrope", "factor": 8,
  "original_max_position_embeddings": 256, "short_factor": [1, 1, 1, 1, 1, 1, 1, 1],
  "long_factor": {}{}}})",
                       factors, rest);
  };
  const std::string plain_long = "[1, 2, 3, 4, 5, 6, 7, 8]";
  const struct {
    std::string ours, theirs;
    const char* named;
  } cases[] = {
      {"", R"(, "rms_norm_eps": 1e-5)", "rms_norm_eps"},
      {"", R"(, "rope_theta": 5e5)", "rope_theta"},
      {"", R"(, "attention_bias": true)", "attention_bias"},
      {"", R"(, "mlp_bias": true)", "mlp_bias"},
      {"", R"(, "tie_word_embeddings": true)", "tie_word_embeddings"},
      {"", R"(, "num_key_value_heads": 2)", "num_key_value_heads"},
      {"", R"(, "head_dim": 32)", "head_dim"},
      {"", R"(, "max_position_embeddings": 4096)", "max_position_embeddings"},
      {"", R"(, "rope_scaling": {"rope_type": "linear", "factor": 4})", "rope_type"},
      {R"(, "rope_scaling": {"rope_type": "linear", "factor": 4})",
       R"(, "rope_scaling": {"rope_type": "linear", "factor": 2})", "rope factor"},
      {llama3("1", "4", "256"), llama3("2", "4", "256"), "low_freq_factor"},
      {llama3("1", "4", "256"), llama3("1", "8", "256"), "high_freq_factor"},
      {llama3("1", "4", "256"), llama3("1", "4", "512"), "original_max_position_embeddings"},
      {yarn(""), yarn(R"(, "beta_fast": 16)"), "beta_fast"},
      {yarn(""), yarn(R"(, "beta_slow": 2)"), "beta_slow"},
      {yarn(""), yarn(R"(, "truncate": false)"), "truncate"},
      {yarn(""), yarn(R"(, "mscale": 0.7)"), "mscale"},
      {yarn(""), yarn(R"(, "mscale_all_dim": 0.7)"), "mscale_all_dim"},
      {yarn(""), yarn(R"(, "attention_factor": 1.5)"), "attention_factor"},
      {longrope(plain_long.c_str(), ""), longrope("[1, 2, 3, 4, 5, 6, 7, 9]", ""), "long_factor"},
      {longrope(plain_long.c_str(), ""), longrope(plain_long.c_str(), R"(, "attention_factor": 2)"),
       "attention_factor"},
  };
  for (const auto& c : cases) {
    const auto ours = config(c.ours);
    for (const auto& model :
         {ours.decoder, llama3::build(sizes_of(ours.decoder), rope_of(ours.decoder))}) {
      EXPECT_THAT(hf::differences(model, ours), testing::IsEmpty()) << c.ours;
      EXPECT_THAT(hf::differences(model, config(c.theirs)),
                  testing::ElementsAre(testing::StartsWith(c.named)))
          << c.ours << " against " << c.theirs;
    }
  }
}

TEST(ConfigJson, FieldsThatMayOnlyHaveOneValue) {
  for (const char* field :
       {R"("rope_interleaved": true)", R"("is_encoder_decoder": true)",
        R"("chunk_size_feed_forward": 64)", R"("hidden_act": "xielu")",
        R"("use_sliding_window": true)", R"("quantization_config": {"bits": 4})",
        R"("quantization_config": {"quant_method": "gptq"})", R"("quantization_config": 4)",
        R"("partial_rotary_factor": 1.5)"}) {
    EXPECT_THROW(hf::parse_config(std::string(kSmall) + ", " + field + "}", "config.json"), Error)
        << field;
  }
  EXPECT_NO_THROW(hf::parse_config(std::string(kSmall) +
                                       R"(, "rope_interleaved": false, "is_llama_config": true,
  "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
  "is_encoder_decoder": false, "chunk_size_feed_forward": 0, "pretraining_tp": 1})",
                                   "config.json"));
}

}  // namespace
}  // namespace rhea::models
