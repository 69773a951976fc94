// LaunchEnv: which rank of how many this process is, read from the variables of whoever started it.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rhea::config {

// How to look up a variable; std::getenv by default, a table in tests.
using EnvLookup = std::function<std::optional<std::string>(const std::string&)>;
EnvLookup process_env();

struct LaunchEnv {
  std::string launcher = "none";  // torchrun, openmpi, pmix, slurm, none
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t local_rank = 0;
  int64_t local_world_size = 1;
  std::string master_addr = "127.0.0.1";
  int64_t master_port = 0;  // 0: not given
  std::vector<int64_t> log_ranks = {0};
  std::optional<int64_t> dry_run_world_size;  // NGPU

  // Whether this rank writes to the console.
  bool logs() const;
};

// torchrun's names win, because they are also set inside srun; then Open MPI, PMIx, Slurm; else one
// process. Throws Error naming variable and value where the numbers are missing, no numbers or do
// not fit each other.
LaunchEnv detect_launch(const EnvLookup& env = process_env());

// The device that this process drives: 0 with one visible device, whatever LOCAL_RANK says; else
// LOCAL_RANK, which must be one of them. Throws Error with both numbers.
int64_t device_index(const LaunchEnv& launch, int64_t num_visible_devices);

}  // namespace rhea::config
