// A fused parameter is saved as its parts.
#include "rhea/trainer_state.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/version.h"
#include "rhea/components/checkpoint/adapters.h"
#include "rhea/config/json.h"
#include "rhea/models/converters/convert.h"
#include "rhea/parameter_tensors.h"

namespace rhea {
namespace {

void add_model(StockTensors& tensors, const train_step::TrainStep& step) {
  for (size_t i = 0; i < step.graphs().parameters.size(); ++i)
    tensors.add(step.graphs().parameters[i], step.parameters()[i].type.dtype,
                step.parameters()[i].data);
  for (size_t i = 0; i < step.graphs().frozen.size(); ++i)
    tensors.add(step.graphs().frozen[i], step.frozen()[i].type.dtype, step.frozen()[i].data);
  for (size_t i = 0; i < step.graphs().constants.size(); ++i)
    tensors.add(step.graphs().constants[i], DType::f32, step.constants()[i].data);
}

// The config as a checkpoint records it: the folders by which generate, score and convert find what
// lies beside the weights are the same from every working folder.
std::string config_text(TrainerConfig config) {
  for (std::string* path : {&config.hf_assets_path, &config.tokenizer->path})
    if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal().string();
  return config::to_json(config, -1);
}

}  // namespace

StockTensors model_tensors(const train_step::TrainStep& step) {
  StockTensors tensors;
  add_model(tensors, step);
  tensors.gather();
  return tensors;
}

StockTensors checkpoint_tensors(const train_step::TrainStep& step) {
  StockTensors tensors;
  add_model(tensors, step);
  const auto& graphs = step.graphs();
  size_t next = 0;
  for (size_t i = 0; i < graphs.parameters.size(); ++i) {
    for (const auto& state : graphs.groups.groups[graphs.groups.group_of[i]].state_names()) {
      const auto& tensor = step.optimizer_state()[next++];
      tensors.add(graphs.parameters[i], tensor.type.dtype, tensor.data, "optimizer.state.",
                  "." + state);
    }
  }
  tensors.gather();
  return tensors;
}

checkpoint::StateMap state_map(const TrainState& state, const std::string& loader_state,
                               const TrainerConfig& config, const std::string& hf_config_json,
                               const std::vector<checkpoint::Adapter>& adapters) {
  using nlohmann::json;
  checkpoint::StateMap map = {
      {"train_state", json{{"step", state.step}, {"ntokens_seen", state.tokens_seen}}.dump()},
      {"lr_scheduler", json{{"step", state.schedule_step}}.dump()},
      {"optimizer", json{{"step", state.optimizer_step}}.dump()},
      {"dataloader", loader_state},
      {"rng", json{{"seed", state.seed.value_or(0)}}.dump()},
      {"config", config_text(config)},
      {"overrides", json(config.override.active).dump()},
      {"converters", json(models::describe_converters(config.model_spec)).dump()},
      {"hf_config", hf_config_json},
      {"mesh", R"({"pp": 1, "dp_replicate": 1, "dp_shard": 1, "cp": 1, "tp": 1, "ep": 1})"},
      {"versions", json{{"rhea", std::string(version())}}.dump()}};
  if (!adapters.empty()) map.emplace("adapters", checkpoint::adapters_text(adapters));
  return map;
}

std::optional<std::vector<std::string>> saved_list(const checkpoint::StateMap& map,
                                                   const std::string& part) {
  const auto at = map.find(part);
  if (at == map.end()) return std::nullopt;
  try {
    return parse_json(at->second).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& error) {
    throw Error("checkpoint state '{}' cannot be read: {}", part, json_reason(error.what()));
  }
}

void read_state(const checkpoint::StateMap& map, TrainState& state) {
  const auto field = [&](const char* part, const char* name, auto& value) {
    const auto at = map.find(part);
    if (at == map.end()) return;
    try {
      parse_json(at->second).at(name).get_to(value);
    } catch (const nlohmann::json::exception& error) {
      throw Error("checkpoint state '{}' cannot be read: {}", part, json_reason(error.what()));
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
