#include "rhea/config/launch_env.h"

#include <algorithm>
#include <cstdlib>

#include "rhea/base/error.h"
#include "rhea/config/leaf_text.h"

namespace rhea::config {
namespace {

// Names of one launcher's variables, best first where there are several.
struct Names {
  const char* launcher;
  const char* rank;
  std::vector<const char*> world_size;
  std::vector<const char*> local_rank;
  std::vector<const char*> local_world_size;
};

const std::vector<Names>& launchers() {
  static const std::vector<Names> names = {
      {"torchrun", "RANK", {"WORLD_SIZE"}, {"LOCAL_RANK"}, {"LOCAL_WORLD_SIZE"}},
      {"openmpi",
       "OMPI_COMM_WORLD_RANK",
       {"OMPI_COMM_WORLD_SIZE"},
       {"OMPI_COMM_WORLD_LOCAL_RANK"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE"}},
      // PMIx itself has only the rank in the environment; the rest comes from the resource manager
      // below it.
      {"pmix",
       "PMIX_RANK",
       {"PMIX_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
       {"PMIX_LOCAL_RANK", "SLURM_LOCALID"},
       {"PMIX_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"}},
      {"slurm",
       "SLURM_PROCID",
       {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
       {"SLURM_LOCALID"},
       {"SLURM_NTASKS_PER_NODE"}}};
  return names;
}

int64_t number(const std::string& name, const std::string& text, int64_t lowest) {
  int64_t value = 0;
  if (parse_leaf(Leaf(&value), text) || value < lowest)
    throw Error("environment variable {}='{}': expected an integer of at least {}", name, text,
                lowest);
  return value;
}

std::optional<int64_t> first_number(const EnvLookup& env, const std::vector<const char*>& names,
                                    int64_t lowest) {
  for (const char* name : names)
    if (const auto text = env(name)) return number(name, *text, lowest);
  return std::nullopt;
}

bool started_by(const Names& names, const EnvLookup& env) {
  if (!env(names.rank)) return false;
  const std::string launcher = names.launcher;
  if (launcher == "torchrun") return env("WORLD_SIZE").has_value();
  // A batch script has SLURM_PROCID=0 too, without being a task of a step.
  if (launcher == "slurm") return env("SLURM_STEP_ID").has_value();
  return true;
}

void read_ranks(const Names& names, const EnvLookup& env, LaunchEnv& launch) {
  launch.launcher = names.launcher;
  launch.rank = number(names.rank, *env(names.rank), 0);
  const auto world = first_number(env, names.world_size, 1);
  if (!world)
    throw Error("{} is set ({}), but not the number of ranks: set {}", names.rank, launch.rank,
                names.world_size.front());
  launch.world_size = *world;
  if (launch.rank >= launch.world_size)
    throw Error("{}={} must be below {}={}", names.rank, launch.rank, names.world_size.front(),
                launch.world_size);
  // A single process has one choice of device, so a broken LOCAL_RANK is no reason to stop it.
  if (launch.world_size > 1) {
    const auto local = first_number(env, names.local_rank, 0);
    if (!local)
      throw Error(
          "{} must be set when {} ({}) is above 1: it chooses this process' device and cores",
          names.local_rank.front(), names.world_size.front(), launch.world_size);
    launch.local_rank = *local;
  }
  launch.local_world_size =
      first_number(env, names.local_world_size, 1).value_or(launch.local_rank + 1);
}

}  // namespace

EnvLookup process_env() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

bool LaunchEnv::logs() const { return std::ranges::find(log_ranks, rank) != log_ranks.end(); }

LaunchEnv detect_launch(const EnvLookup& env) {
  LaunchEnv launch;
  const auto& all = launchers();
  if (const auto it = std::ranges::find_if(all, [&](const Names& n) { return started_by(n, env); });
      it != all.end())
    read_ranks(*it, env, launch);
  else if (const auto world = env("WORLD_SIZE"); world && number("WORLD_SIZE", *world, 1) > 1)
    throw Error("WORLD_SIZE={} is set without RANK: start the ranks with torchrun, mpirun or srun",
                *world);

  if (const auto address = env("MASTER_ADDR")) launch.master_addr = *address;
  if (const auto port = env("MASTER_PORT")) {
    launch.master_port = number("MASTER_PORT", *port, 1);
    if (launch.master_port > 65535)
      throw Error("environment variable MASTER_PORT='{}': ports end at 65535", *port);
  }
  if (const auto ranks = env("LOG_RANK"); ranks && !ranks->empty()) {
    launch.log_ranks.clear();
    for (std::string rank : split(*ranks, ',')) {
      std::erase(rank, ' ');
      launch.log_ranks.push_back(number("LOG_RANK", rank, 0));
    }
  }
  if (const auto size = env("NGPU")) launch.dry_run_world_size = number("NGPU", *size, 1);
  return launch;
}

int64_t device_index(const LaunchEnv& launch, int64_t num_visible_devices) {
  if (num_visible_devices == 1) return 0;
  if (launch.local_rank < num_visible_devices) return launch.local_rank;
  throw Error("LOCAL_RANK is {}, but only {} devices are visible to this process",
              launch.local_rank, num_visible_devices);
}

}  // namespace rhea::config
