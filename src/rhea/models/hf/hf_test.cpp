// The table of published architectures: class defaults, both spellings, fields that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/models/decoder_sizes.h"
#include "rhea/models/hf/build.h"
#include "rhea/models/hf/test_models.h"
#include "rhea/models/llama3/llama3.h"
#include "rhea/models/model_size.h"
#include "rhea/models/parts.h"
#include "rhea/models/qwen3/qwen3.h"
#include "rhea/models/registry.h"
#include "rhea/nn/alibi.h"
#include "rhea/nn/moe.h"

namespace rhea::models::hf {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ModelSize size_of(const nn::Decoder::Config& model, int64_t seq_len = 8) {
  ir::Graph graph;
  nn::Trace trace(graph, {.num_tokens = seq_len, .seq_len = seq_len});
  nn::language_model_loss(trace, model, 1);
  return model_size(model, trace.parameters(), seq_len);
}

nn::Attention::Config attention(const nn::Decoder::Config& model, size_t layer = 0) {
  return attention_of(*model.layers.at(layer));
}

// Parameters of Transformers' models of the class defaults.
TEST(Table, ClassDefaultsGiveTransformersSizes) {
  const std::pair<const char*, int64_t> kSizes[] = {{"llama", 6738415616},
                                                    {"mistral", 7241732096},
                                                    {"ministral", 7241732096},
                                                    {"hunyuan_v1_dense", 8859684864},
                                                    {"qwen2", 12049846272},
                                                    {"qwen3", 12049461248},
                                                    {"gemma", 8537680896},
                                                    {"gemma2", 2614341888},
                                                    {"olmo", 6888095744},
                                                    {"gemma3_text", 2628658432},
                                                    {"olmo2", 6888624128},
                                                    {"olmo3", 6888624128},
                                                    {"smollm3", 3075098624},
                                                    {"granite", 6738415616},
                                                    {"glm", 9399951360},
                                                    {"glm4", 9400279040},
                                                    {"ernie4_5", 360748032},
                                                    {"phi3", 3821079552},
                                                    {"cohere", 34980831232},
                                                    {"cohere2", 34980831232},
                                                    {"seed_oss", 28921040896},
                                                    {"arcee", 4022766080},
                                                    {"helium", 2172643840},
                                                    {"exaone4", 9429069824},
                                                    {"apertus", 6979596352},
                                                    {"cwm", 32581097472},
                                                    {"mixtral", 46702792704},
                                                    {"olmoe", 13361612800},
                                                    {"qwen2_moe", 14315784192},
                                                    {"qwen3_moe", 15350731776},
                                                    {"phimoe", 41872793600},
                                                    {"gpt_oss", 116829156672},
                                                    {"deepseek_v3", 671026404352},
                                                    {"ernie4_5_moe", 21825436160},
                                                    {"qwen3_next", 79674391296},
                                                    {"granitemoe", 37039116288},
                                                    {"minimax_m2", 228689748992},
                                                    {"gpt2", 124439808},
                                                    {"gpt_bigcode", 111446784},
                                                    {"gpt_neox", 20554567680},
                                                    {"gptj", 6050882784},
                                                    {"codegen", 6050882784},
                                                    {"opt", 125239296},
                                                    {"bloom", 16156544},
                                                    {"mpt", 1311213568},
                                                    {"falcon", 6921720704},
                                                    {"phi", 1418270720},
                                                    {"stablelm", 2795443200},
                                                    {"starcoder2", 3030371328}};
  for (const auto& [type, parameters] : kSizes)
    EXPECT_EQ(size_of(decoder_of({{"model_type", type}})).num_parameters, parameters) << type;
  // Of these Transformers has no defaults for the experts: dots.llm1 as it was published.
  json config = {
      {"model_type", "deepseek_v2"}, {"n_routed_experts", 64}, {"num_experts_per_tok", 6}};
  EXPECT_EQ(size_of(decoder_of(config)).num_parameters, 38612307968);
  config = {{"model_type", "dots1"},     {"hidden_size", 4096},
            {"n_routed_experts", 128},   {"n_shared_experts", 2},
            {"num_experts_per_tok", 6},  {"moe_intermediate_size", 1408},
            {"first_k_dense_replace", 1}};
  EXPECT_EQ(size_of(decoder_of(config)).num_parameters, 142774373888);
}

// Values that no field of the type of `value` takes.
std::vector<json> wrong_for(const json& value) {
  std::vector<json> wrong = {json::object({{"a", 1}}), json::array({json::object()})};
  if (!value.is_string()) wrong.emplace_back("text");
  if (!value.is_number()) wrong.emplace_back(3.5);
  if (!value.is_boolean()) wrong.emplace_back(true);
  if (value.is_number_integer()) wrong.emplace_back(0.5);
  return wrong;
}

// A value of a wrong type in any field that has a class default is an error that names file and
// field.
TEST(Table, FieldsOfAWrongTypeAreNamed) {
  // Read in place of a field of the file only, which is absent here; or whole numbers where the
  // class has one, though any number will do.
  const std::set<std::string> kReal = {
      "query_pre_attn_scalar",  "embedding_multiplier",
      "attn_logit_softcapping", "final_logit_softcapping",
      "logits_scaling",         "residual_multiplier",
      "attention_multiplier",   "original_max_position_embeddings"};
  for (const auto type : model_types()) {
    const json defaults = parse_json(find_row(type).defaults);
    json config = small(type);
    ASSERT_NO_THROW(decoder_of(config)) << type;
    for (const auto& [field, value] : defaults.items()) {
      for (const json& wrong : wrong_for(value)) {
        if (value.is_object() && wrong.is_object()) continue;
        if (kReal.contains(field) && wrong == 0.5) continue;
        expect_refused(config, field, wrong, field);
      }
    }
    expect_refused(config, "frobnicate", 1, "frobnicate = 1");
    expect_refused(config, "architectures", json::array({"OtherForCausalLM"}),
                   std::string(find_row(type).architectures.front()));
  }
}

// W4: the head dim is a number of its own.
TEST(Table, HeadDimIsItsOwnNumber) {
  json config = {{"model_type", "llama"},
                 {"hidden_size", 2560},
                 {"num_attention_heads", 32},
                 {"num_hidden_layers", 1},
                 {"head_dim", 128}};
  const auto wide = attention(decoder_of(config));
  EXPECT_EQ(wide.qkv_linear.as<nn::SplitQKV::Config>()->wq->out_features, 4096);
  EXPECT_EQ(wide.wo->in_features, 4096);
  EXPECT_EQ(wide.wo->out_features, 2560);
  EXPECT_EQ(wide.scale, 0);  // head_dim^-0.5
  for (const json& absent : {json(), json(80)}) {
    config["head_dim"] = absent;
    EXPECT_EQ(attention(decoder_of(config)).qkv_linear->head_dim, 80);
  }
  config["hidden_size"] = 2561;
  config["head_dim"] = nullptr;
  EXPECT_THROW(decoder_of(config), Error);
}

// W20: what the class says where the file says nothing, and that it was taken.
TEST(Table, TyingFollowsTheClass) {
  const std::set<std::string_view> kTied = {"gemma",      "gemma2",   "gemma3_text",  "smollm3",
                                            "starcoder2", "ernie4_5", "ernie4_5_moe", "cohere",
                                            "cohere2",    "gpt2",     "gpt_bigcode",  "opt",
                                            "bloom",      "falcon",   "mpt"};
  for (const auto type : model_types()) {
    json config = small(type);
    const auto absent = parse_config(config.dump(), "config.json");
    EXPECT_EQ(absent.decoder.tie_word_embeddings, kTied.contains(type)) << type;
    EXPECT_THAT(absent.notes.defaulted,
                testing::Contains(fmt::format("tie_word_embeddings = {}", kTied.contains(type))));
    for (const bool tied : {false, true}) {
      config["tie_word_embeddings"] = tied;
      EXPECT_EQ(decoder_of(config).tie_word_embeddings, tied) << type;
    }
  }
}

// W17: ids have no effect, whatever their form.
TEST(Table, EndsOfTextMayBeLists) {
  json config = small("llama");
  config["eos_token_id"] = {1, 2, 3};
  EXPECT_NO_THROW(decoder_of(config));
}

// W6, and every other value that a run may put in the place of the file's.
TEST(Table, OverridesOfTheRun) {
  json config = small("llama");
  config["rope_parameters"] = {{"rope_type", "yarn"}, {"rope_theta", 1e6}, {"factor", 4.0}};
  HfOverridesConfig overrides;
  overrides.dim = 128;
  overrides.n_layers = 2;
  overrides.n_heads = 8;
  overrides.n_kv_heads = 4;
  overrides.intermediate_size = 160;
  overrides.vocab_size = 50;
  overrides.norm_eps = 1e-3;
  const auto model = decoder_of(config, overrides);
  const DecoderSizes sizes = sizes_of(model);
  EXPECT_EQ(sizes.dim, 128);
  EXPECT_EQ(sizes.n_layers, 2);
  EXPECT_EQ(sizes.n_heads, 8);
  EXPECT_EQ(sizes.n_kv_heads, 4);
  EXPECT_EQ(sizes.hidden_dim, 160);
  EXPECT_EQ(sizes.vocab_size, 50);
  EXPECT_EQ(sizes.norm_eps, 1e-3);
  EXPECT_EQ(rope_of(model).theta, 1e6);
  overrides.rope_theta = 5e5;
  const auto other = decoder_of(config, overrides);
  EXPECT_EQ(rope_of(other).theta, 5e5);
  EXPECT_EQ(rope_of(other).scaling, "yarn");
}

// A row's own spelling of a field is what the run's value replaces.
TEST(Table, OverridesFollowTheRowsSpelling) {
  HfOverridesConfig overrides;
  overrides.norm_eps = 1e-3;
  EXPECT_EQ(decoder_of(small("cohere"), overrides).norm->eps, 1e-3);
}

TEST(Table, LayerListsAreCutWithTheLayers) {
  json config = small("gemma3_text");
  config["layer_types"] = {"sliding_attention", "full_attention", "sliding_attention",
                           "full_attention"};
  config["sliding_window"] = 16;
  HfOverridesConfig overrides;
  overrides.n_layers = 2;
  const auto model = decoder_of(config, overrides);
  EXPECT_EQ(attention(model, 0).sliding_window, 16);
  EXPECT_EQ(attention(model, 1).sliding_window, 0);
  overrides.n_layers = 6;
  EXPECT_THROW(decoder_of(config, overrides), Error);
  expect_refused(config, "layer_types", {"full_attention"}, "layer_types has 1 entries");
  expect_refused(config, "layer_types",
                 {"full_attention", "linear_attention", "full_attention", "full_attention"},
                 "linear_attention");
}

TEST(Table, AWindowMayBeNullOrAbsent) {
  json config = small("mistral");
  EXPECT_EQ(attention(decoder_of(config)).sliding_window, 4096);
  config["sliding_window"] = nullptr;
  EXPECT_EQ(attention(decoder_of(config)).sliding_window, 0);
}

TEST(Table, Qwen2SlidesOnlyWhenToldAndFromALayerOn) {
  json config = small("qwen2");
  config["sliding_window"] = 7;
  config["max_window_layers"] = 2;
  const auto windows = [&] {
    std::vector<int64_t> found;
    const auto model = decoder_of(config);
    for (size_t i = 0; i < 4; ++i) found.push_back(attention(model, i).sliding_window);
    return found;
  };
  EXPECT_THAT(windows(), testing::ElementsAre(0, 0, 0, 0));
  config["use_sliding_window"] = true;
  EXPECT_THAT(windows(), testing::ElementsAre(0, 0, 7, 7));
}

TEST(Table, ValuesThatAreNotSupportedAreNamed) {
  expect_refused(small("qwen2"), "use_mrope", true, "use_mrope");
  expect_refused(small("gemma"), "use_bidirectional_attention", true,
                 "use_bidirectional_attention");
  expect_refused(small("granite"), "attention_multiplier", 0, "attention_multiplier");
  expect_refused(small("granite"), "logits_scaling", -1, "logits_scaling");
  expect_refused(small("gemma2"), "query_pre_attn_scalar", 0, "query_pre_attn_scalar");
  expect_refused(small("gemma2"), "attn_logit_softcapping", 0, "attn_logit_softcapping");
  expect_refused(small("llama"), "hidden_act", "mish", "gelu_pytorch_tanh");
  expect_refused(small("smollm3"), "no_rope_layers", {1, 0}, "no_rope_layers has 2 entries");
  expect_refused({{"model_type", "mamba2"}}, "x", 1, "exaone4");
}

// W23: one number of parameters and flops for one model, by either path.
TEST(Table, NativeAndPublishedPathCountTheSame) {
  for (const ModelSpec& spec : {llama3::model_registry("8B"), llama3::model_registry("1B"),
                                qwen3::model_registry("8B"), qwen3::model_registry("0.6B")}) {
    const auto& native = *spec.model.as<nn::Decoder::Config>();
    const auto published = parse_config(write_config(native), "config.json");
    const ModelSize ours = size_of(native, 4096), theirs = size_of(published.decoder, 4096);
    EXPECT_EQ(ours.num_parameters, theirs.num_parameters) << spec.name << " " << spec.flavor;
    EXPECT_EQ(ours.flops_per_token, theirs.flops_per_token) << spec.name << " " << spec.flavor;
  }
}

// The row "HF backend" of the table of initial distributions.
TEST(Table, RandomWeightsFollowTheRulesOfTheBackend) {
  const auto starts = [](const json& config) {
    ir::Graph graph;
    nn::Trace trace(graph, {.num_tokens = 8, .seq_len = 8});
    nn::language_model_loss(trace, decoder_of(config), 1);
    std::map<std::string, nn::Init> found;
    for (const auto& parameter : trace.parameters())
      for (const auto& part : parameter.parts) found[part.fqn] = part.init;
    return found;
  };
  json config = small("llama");
  auto init = starts(config);
  const std::string layer = "model.layers.2.";
  EXPECT_EQ(init["model.embed_tokens.weight"], nn::Init::normal(1));
  EXPECT_EQ(init["lm_head.weight"], head_init(64));
  for (const char* name :
       {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj"})
    EXPECT_EQ(init[layer + name + ".weight"], linear_init()) << name;
  for (const char* name : {"self_attn.o_proj", "mlp.up_proj", "mlp.down_proj"})
    EXPECT_EQ(init[layer + name + ".weight"], depth_init(2)) << name;
  EXPECT_EQ(init[layer + "input_layernorm.weight"], nn::Init::ones());
  config["tie_word_embeddings"] = true;
  config["attention_bias"] = true;
  init = starts(config);
  EXPECT_EQ(init["model.embed_tokens.weight"], head_init(64));
  EXPECT_EQ(init[layer + "self_attn.q_proj.bias"], nn::Init::zeros());
  // 1 + weight starts at 1.
  EXPECT_EQ(starts(small("gemma"))[layer + "input_layernorm.weight"], nn::Init::zeros());
}

// What a row of several documents sees, by option of the run; None is block_causal.
TEST(Table, TheRunChoosesTheMask) {
  const auto kinds = [](std::optional<std::string> choice) {
    TrainerConfig config;
    config.model_spec = deferred_spec("transformers_modeling_backend");
    config.hf_model = RHEA_SOURCE_DIR "/tests/data/golden/models/gemma2";
    config.hf_overrides.attn_mask_type = std::move(choice);
    complete_spec(config);
    auto& model = *config.model_spec.model.as<nn::Decoder::Config>();
    std::set<bool> masked;
    for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t) {
      masked.insert(attention.document_mask);
    });
    return masked;
  };
  EXPECT_EQ(kinds({}), std::set{true});
  EXPECT_EQ(kinds("block_causal"), std::set{true});
  EXPECT_EQ(kinds("causal"), std::set{false});
}

TEST(Table, SharedExpertsMayBeNone) {
  for (const char* type : {"deepseek_v2", "deepseek_v3", "glm4_moe", "dots1", "ernie4_5_moe"}) {
    json config = small(type);
    const char* field =
        std::string_view(type) == "ernie4_5_moe" ? "moe_num_shared_experts" : "n_shared_experts";
    const auto shared = [&] {
      const auto model = decoder_of(config);
      return static_cast<bool>(
          model.layers.back()->feed_forward.as<nn::MoE::Config>()->shared_experts);
    };
    config[field] = 1;
    EXPECT_TRUE(shared()) << type;
    config[field] = 0;
    EXPECT_FALSE(shared()) << type;
    config[field] = -1;
    EXPECT_THROW(decoder_of(config), Error) << type;
  }
  json config = small("deepseek_v2");
  config["n_shared_experts"] = 0;
  expect_refused(config, "mlp_bias", true, "n_shared_experts = 0 and mlp_bias = true");
}

TEST(Table, LayersForSeveralTokensHaveTwoNames) {
  for (const char* type : {"deepseek_v3", "glm4_moe"}) {
    json config = small(type);
    config["num_mtp_layers"] = 3;
    EXPECT_EQ(decoder_of(config).num_mtp_layers, 3) << type;
    expect_refused(config, "num_nextn_predict_layers", 2,
                   "num_nextn_predict_layers is 2 and num_mtp_layers is 3");
  }
}

TEST(Table, WindowsAreNotNamedWithoutOne) {
  for (const char* type : {"qwen2", "qwen3", "qwen2_moe", "smollm3", "gemma2", "gpt_oss", "cwm"}) {
    json config = small(type);
    config["sliding_window"] = nullptr;
    expect_refused(config, "layer_types",
                   {"full_attention", "sliding_attention", "full_attention", "full_attention"},
                   "nothing slides");
  }
}

// Falcon's biases by distance, by option of the run or of the file.
TEST(Table, FalconsBiasesCountAsOftenAsTheAttentionSays) {
  json config = small("falcon");
  config["alibi"] = true;
  const auto factor = [&](std::optional<std::string> choice) {
    HfOverridesConfig overrides;
    overrides.attn_implementation = std::move(choice);
    const auto model = decoder_of(config, overrides);
    return attention(model).position_bias.as<nn::Alibi::Config>()->factor;
  };
  EXPECT_EQ(factor({}), 2 * factor("sdpa"));
  EXPECT_EQ(factor("eager"), 2 * factor("sdpa"));
  config["attn_implementation"] = "sdpa";
  EXPECT_EQ(factor({}), factor("sdpa"));
  EXPECT_EQ(factor("eager"), 2 * factor("sdpa"));
}

TEST(Table, DropoutIsAWarning) {
  json config = small("phi3");
  config["resid_pdrop"] = 0.1;
  config["attention_dropout"] = 0.0;
  const auto published = parse_config(config.dump(), "config.json");
  EXPECT_THAT(published.notes.warnings, testing::ElementsAre(HasSubstr("resid_pdrop = 0.1")));
}

}  // namespace
}  // namespace rhea::models::hf
