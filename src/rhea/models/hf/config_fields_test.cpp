// Every field of published configs, taken away and changed: an error, or the model that the changed
// file describes. Never the same model as before, as if the field had not been read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/config/json.h"
#include "rhea/models/hf/config_json.h"

namespace rhea::models::hf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kModels = RHEA_SOURCE_DIR "/tests/data/golden/models";

// Read by other tools, of heads for other tasks, how scores are rounded, or not applied in training
// and warned about.
const std::set<std::string> kNoEffect = {"architectures",
                                         "bos_token_id",
                                         "eos_token_id",
                                         "eod_token_id",
                                         "pad_token_id",
                                         "dtype",
                                         "torch_dtype",
                                         "use_cache",
                                         "pretraining_tp",
                                         "initializer_range",
                                         "init_std",
                                         "init_device",
                                         "transformers_version",
                                         "n_ctx",
                                         "is_decoder",
                                         "attn_impl",
                                         "attn_implementation",
                                         "_name_or_path",
                                         "output_attentions",
                                         "output_hidden_states",
                                         "output_router_logits",
                                         "return_dict",
                                         "summary_type",
                                         "summary_use_proj",
                                         "summary_first_dropout",
                                         "summary_proj_to_labels",
                                         "classifier_dropout",
                                         "reorder_and_upcast_attn",
                                         "attention_softmax_in_fp32",
                                         "scale_attention_softmax_in_fp32",
                                         "router_aux_loss_coef",
                                         "aux_loss_alpha",
                                         "seq_aux",
                                         "ep_size",
                                         "router_jitter_noise",
                                         "input_jitter_noise",
                                         "num_nextn_predict_layers",
                                         "num_mtp_layers",
                                         "attention_dropout",
                                         "hidden_dropout",
                                         "embedding_dropout",
                                         "residual_dropout",
                                         "activation_dropout",
                                         "dropout",
                                         "layerdrop",
                                         "attn_pdrop",
                                         "emb_pdrop",
                                         "embd_pdrop",
                                         "resid_pdrop",
                                         "qk_head_dim",
                                         "expansion_ratio",
                                         "learned_pos_emb",
                                         "_sliding_window_pattern"};
// Numbers that need not be whole, although the file has a whole one.
const std::set<std::string> kRealFields = {"query_pre_attn_scalar", "beta_fast", "beta_slow",
                                           "original_max_position_embeddings"};

bool has(const json& object, const char* field) {
  return object.contains(field) && !object[field].is_null();
}

// Fields that others of the file switch off or go before, as in Transformers.
bool is_idle(const json& config, const json& object, bool at_top, const std::string& field) {
  const bool layer_list = has(config, "layer_types") || has(config, "no_rope_layers");
  for (const char* rule : {"max_window_layers", "no_rope_layer_interval", "sliding_window_pattern"})
    if (field == rule) return layer_list;
  if (field == "sliding_window")
    return config.contains("use_sliding_window") && config["use_sliding_window"] != true;
  if (field == "use_sliding_window") return !has(config, "sliding_window") || layer_list;
  if (field == "original_max_position_embeddings") {
    if (!at_top) return has(config, "original_max_position_embeddings");
    const json rope = config.value("rope_parameters", config.value("rope_scaling", json()));
    return !rope.is_object() || rope.value("rope_type", rope.value("type", "default")) == "default";
  }
  // Of layers that this size has none of, or too few to tell.
  if (field == "intermediate_size") return has(config, "moe_intermediate_size");
  if (field == "moe_layer_interval" || field == "moe_layer_end_index") return true;
  if (field == "n_group" || field == "topk_group")
    return config.value("topk_method", "") == "greedy";
  // Latent attention has widths of its own.
  if (field == "head_dim") return has(config, "kv_lora_rank");
  // Falcon's layouts, and its positions where there are none.
  if (config["model_type"] == "falcon") {
    const bool grouped = config["new_decoder_architecture"] == true;
    if (field == "num_kv_heads") return !grouped;
    if (field == "multi_query") return grouped;
    if (config["alibi"] == true && (field == "max_position_embeddings" || field == "rope_theta"))
      return true;
  }
  if (field == "num_key_value_heads") return config["model_type"] == "gpt_bigcode";
  if (field == "_remove_final_layer_norm") return config["do_layer_norm_before"] == false;
  // Beside an object for each kind of layer.
  return !at_top && object.contains("full_attention");
}

std::string fingerprint(const json& config) {
  return config::to_json(parse_config(config.dump(), "config.json").decoder, -1);
}

// Values of another type than `value`, or that no field of that type takes.
std::vector<json> wrong_values(const json& value, bool real) {
  std::vector<json> wrong = {json::object({{"a", 1}}), json::array({json::object()})};
  if (!value.is_string()) wrong.push_back("x");
  if (!value.is_number()) wrong.push_back(3.5);
  if (!value.is_boolean()) wrong.push_back(true);
  if (value.is_number_integer() && !real) {
    for (const double number : {-1.0, 0.5, 1e300, -1e300}) wrong.push_back(number);
  }
  if (value.is_string()) wrong.push_back("no such word");
  return wrong;
}

// Another value that the field may take.
std::vector<json> other_values(const json& value) {
  if (value.is_boolean()) return {!value.get<bool>()};
  if (value.is_number_integer()) return {value.get<int64_t>() * 2, value.get<int64_t>() + 1};
  if (value.is_number_float()) return {value.get<double>() * 2, value.get<double>() / 2, -1};
  if (value.is_array() && !value.empty()) {
    json shorter = value, turned = value;
    shorter.erase(shorter.size() - 1);
    std::reverse(turned.begin(), turned.end());
    return turned == value ? std::vector<json>{shorter} : std::vector<json>{shorter, turned};
  }
  return {};
}

class ConfigFields : public testing::TestWithParam<std::string> {
 protected:
  // `change` is one edit of `field`. "" when it is answered as it should be.
  std::string judge(const json& changed, const std::string& before, bool may_be_same) {
    std::string after;
    try {
      after = fingerprint(changed);
    } catch (const Error& error) {
      const std::string message = error.what();
      return message.find("config.json") != std::string::npos ? "" : "unnamed: " + message;
    } catch (const std::exception& error) {
      return std::string("not an Error: ") + error.what();
    }
    return after != before || may_be_same ? "" : "is not read";
  }

  void check(const json& config, json::json_pointer place, const std::string& before) {
    const json object = place.empty() ? config : config.at(place);
    for (const auto& [field, value] : object.items()) {
      const auto at = place / field;
      SCOPED_TRACE(at.to_string() + " = " + value.dump());
      if (field == "id2label" || field == "label2id") continue;
      if (value.is_object()) {
        check(config, at, before);
        continue;
      }
      const bool free = kNoEffect.contains(field) || (field == "model_type" && !place.empty()) ||
                        is_idle(config, object, place.empty(), field) || value.is_null();
      const auto edit = [&](const json& other, bool may_be_same, bool must_fail) {
        json changed = config;
        changed[at] = other;
        std::string problem = judge(changed, before, may_be_same);
        if (problem.empty() && must_fail && !free) {
          try {
            fingerprint(changed);
            problem = "accepted";
          } catch (const Error&) {
          }
        }
        EXPECT_EQ(problem, "") << "changed to " << other.dump();
      };
      json without = config;
      (place.empty() ? without : without[place]).erase(field);
      EXPECT_EQ(judge(without, before, true), "") << "taken away";
      edit(nullptr, true, false);
      for (const json& other : wrong_values(value, kRealFields.contains(field)))
        edit(other, free, true);
      for (const json& other : other_values(value))
        if (other != value) edit(other, free, false);
    }
  }
};

TEST_P(ConfigFields, EachIsReadOrRefused) {
  const fs::path folder = kModels / GetParam();
  for (const char* name : {"config.json", "config_v4.json"}) {
    SCOPED_TRACE(name);
    const json config = parse_json(read_file(folder / name));
    check(config, json::json_pointer(), fingerprint(config));
    json unknown = config;
    unknown["frobnicate"] = 1;
    EXPECT_THAT([&] { fingerprint(unknown); },
                testing::ThrowsMessage<Error>(testing::HasSubstr("frobnicate")));
  }
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& folder : fs::directory_iterator(kModels))
    names.push_back(folder.path().filename());
  std::ranges::sort(names);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Models, ConfigFields, testing::ValuesIn(golden_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rhea::models::hf
