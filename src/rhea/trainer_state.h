// Between the training step and a checkpoint: names, shapes and small state.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "rhea/components/checkpoint/key_map.h"
#include "rhea/components/checkpoint/named_tensor.h"
#include "rhea/components/train_step/train_step.h"
#include "rhea/config/trainer_config.h"
#include "rhea/parameter_tensors.h"

namespace rhea {

// Every stock part of every parameter under its FQN, and of the optimizer's state as
// optimizer.state.<fqn>.<name>.
// The values are gathered; scatter() puts changed ones back.
StockTensors model_tensors(const train_step::TrainStep& step);
StockTensors checkpoint_tensors(const train_step::TrainStep& step);

// Counters that a checkpoint carries.
struct TrainState {
  int64_t step = 0;
  int64_t schedule_step = 0;
  int64_t optimizer_step = 0;
  int64_t tokens_seen = 0;
  std::optional<uint64_t> seed = {};
};
checkpoint::StateMap state_map(const TrainState& state, const std::string& loader_state,
                               const TrainerConfig& config, const std::string& hf_config_json,
                               const std::vector<checkpoint::Adapter>& adapters);
// What was active when `map` was saved: names of "overrides", "converters" with their fields.
// Nothing where `map` does not say. Throws Error where it cannot be read.
std::optional<std::vector<std::string>> saved_list(const checkpoint::StateMap& map,
                                                   const std::string& part);
// Throws Error naming the part that cannot be read; an absent part leaves its fields alone.
void read_state(const checkpoint::StateMap& map, TrainState& state);

}  // namespace rhea
