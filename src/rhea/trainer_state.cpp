// A fused parameter is saved as its parts; row ranges of dim 0 are contiguous, so no copy is made.
#include "rhea/trainer_state.h"

#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/version.h"
#include "rhea/config/json.h"
#include "rhea/models/registry.h"
#include "rhea/published_model.h"

namespace rhea {
namespace {

using checkpoint::NamedTensor;

int64_t head_dim_of(const nn::Decoder::Config& model) {
  return model.layers.empty() ? 0 : model.layers[0]->attention->qkv_linear->head_dim;
}

}  // namespace

std::vector<NamedTensor> model_tensors(const train_step::TrainStep& step) {
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < step.graphs().parameters.size(); ++i)
    add_parts(tensors, step.graphs().parameters[i], step.parameters()[i].type.dtype,
              step.parameters()[i].data);
  return tensors;
}

std::vector<NamedTensor> checkpoint_tensors(const train_step::TrainStep& step) {
  auto tensors = model_tensors(step);
  const auto& graphs = step.graphs();
  size_t next = 0;
  for (size_t i = 0; i < graphs.parameters.size(); ++i) {
    for (const auto& state : graphs.groups.groups[graphs.groups.group_of[i]].state_names()) {
      const auto& tensor = step.optimizer_state()[next++];
      add_parts(tensors, graphs.parameters[i], tensor.type.dtype, tensor.data, "optimizer.state.",
                "." + state);
    }
  }
  return tensors;
}

checkpoint::KeyMap make_key_map(const ModelSpec& spec) {
  const auto& family = models::find_family(spec.name);
  const auto& model = models::decoder(spec);
  checkpoint::KeyMap map = checkpoint::identity_key_map();
  if (!family.key_rules.empty()) {
    const int64_t head_dim = head_dim_of(model);
    map.to_hf = [rules = family.key_rules, head_dim](const std::string& native,
                                                     std::span<const int64_t> shape) {
      const auto key = models::to_hf(rules, native);
      if (!key) throw Error("parameter {} has no Hugging Face name", native);
      checkpoint::HfPart part{key->name, {shape.begin(), shape.end()}};
      if (key->permuted) part.rows = checkpoint::half_split_rows(shape[0], head_dim);
      return std::vector{part};
    };
  }
  if (model.tie_word_embeddings) map.tied = {{"lm_head.weight", "model.embed_tokens.weight"}};
  map.ignorable = [](const std::string& key) { return key.ends_with("rotary_emb.inv_freq"); };
  return map;
}

checkpoint::StateMap state_map(const TrainState& state, const std::string& loader_state,
                               const TrainerConfig& config) {
  using nlohmann::json;
  return {{"train_state", json{{"step", state.step}, {"ntokens_seen", state.tokens_seen}}.dump()},
          {"lr_scheduler", json{{"step", state.schedule_step}}.dump()},
          {"optimizer", json{{"step", state.optimizer_step}}.dump()},
          {"dataloader", loader_state},
          {"rng", json{{"seed", state.seed.value_or(0)}}.dump()},
          {"config", config::to_json(config, -1)},
          {"mesh", R"({"pp": 1, "dp_replicate": 1, "dp_shard": 1, "cp": 1, "tp": 1, "ep": 1})"},
          {"versions", json{{"rhea", std::string(version())}}.dump()}};
}

void read_state(const checkpoint::StateMap& map, TrainState& state) {
  const auto field = [&](const char* part, const char* name, auto& value) {
    const auto at = map.find(part);
    if (at == map.end()) return;
    try {
      nlohmann::json::parse(at->second).at(name).get_to(value);
    } catch (const nlohmann::json::exception& error) {
      throw Error("checkpoint state '{}' cannot be read: {}", part, error.what());
    }
  };
  field("train_state", "step", state.step);
  field("train_state", "ntokens_seen", state.tokens_seen);
  field("lr_scheduler", "step", state.schedule_step);
  field("optimizer", "step", state.optimizer_step);
  uint64_t seed = 0;
  field("rng", "seed", seed);
  if (map.contains("rng")) state.seed = seed;
}

}  // namespace rhea
