// validate: every rule about options that can be known before anything is allocated.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhea/config/report.h"
#include "rhea/config/trainer_config.h"

namespace rhea::config {

// What the rules need to know about the model, whoever knows it fills it in.
struct ModelFacts {
  int64_t n_layers = 0;
  int64_t vocab_size = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t ffn_hidden_dim = 0;          // of dense layers
  int64_t num_experts = 0;             // 0: dense
  std::vector<Problem> problems = {};  // what only the layers above can see
};

// What the rules need to know about this run's surroundings.
struct WorldFacts {
  int64_t world_size = 1;
  bool reads_files = true;          // false: a plan, which needs no data, weights or assets
  std::optional<ModelFacts> model;  // absent: rules about the model's sizes are left out
};

// All problems and warnings of the resolved config, in the order of its sections.
Report validate(const TrainerConfig& config, const WorldFacts& world);

// Degrees with -1 replaced; 1 where the degrees do not fit the world (validate() names that).
struct Degrees {
  int64_t dp_replicate = 1, dp_shard = 1, cp = 1, tp = 1, pp = 1, ep = 1;
  int64_t dp() const { return dp_replicate * dp_shard; }
};
Degrees resolve_degrees(const ParallelismConfig& config, int64_t world_size);

// Sequences of one optimizer step over all ranks, and accumulation steps that make it up. The
// config must be valid.
int64_t resolved_global_batch_size(const TrainerConfig& config, int64_t world_size);
int64_t accumulation_steps(const TrainerConfig& config, int64_t world_size);

}  // namespace rhea::config
