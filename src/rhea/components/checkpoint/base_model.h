// The published model that the adapters of a run belong to, as its checkpoints record it.
#pragma once
#include <filesystem>

#include "rhea/components/checkpoint/named_tensor.h"

namespace rhea::checkpoint {

// Writes "base_model" into the state of a checkpoint: the folder that published weights were taken
// from, which must be absolute, as other commands are called from other folders. Empty: nothing.
void record_base_model(StateMap& state, const std::filesystem::path& base);

// What is recorded there; empty where the weights come from no published folder.
std::filesystem::path recorded_base_model(const StateMap& state);

}  // namespace rhea::checkpoint
