// What this version cannot run. Refused by name at the start: a setting that is silently ignored
// costs a whole run. Whoever builds one of these removes its line.
#include <fmt/format.h>

#include "rhea/config/rules.h"

namespace rhea::config {

void check_scope(const TrainerConfig& config, const WorldFacts& world, Report& report) {
  const auto refuse = [&](bool used, const char* path, const std::string& value,
                          const char* reason) {
    if (used) report.add(path, value, reason);
  };
  if (world.world_size > 1)
    report.add("", "",
               fmt::format("WORLD_SIZE is {}: this version trains with one rank; start one process",
                           world.world_size));
  const std::string& mode = config.comm.mode;
  const std::string& backend = config.compile.backend;
  refuse(backend == "pjrt" || backend == "neuron", "compile.backend", backend,
         "this version runs on the CPU executor only: use native");
  refuse(mode == "threads" || mode == "local_tensor" || mode == "fake_backend", "comm.mode",
         config.comm.mode,
         "this version trains with one rank, which needs no transport: use default");
  refuse(config.metrics->enable_wandb, "metrics.enable_wandb", "true",
         "this version writes TensorBoard files and metrics/rank_0.jsonl");
}

}  // namespace rhea::config
