// Rules of training, parallelism and of the batch that both cut.
#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <numeric>

#include "rhea/config/duration.h"
#include "rhea/config/rules.h"

namespace rhea::config {
namespace {

// Tokens of a microbatch are counted in 32 bits on some devices. A step of 10^12 is far beyond any
// run; its sums still fit.
constexpr int64_t kMostMicrobatchTokens = std::numeric_limits<int32_t>::max();
constexpr double kMostStepTokens = 1e12;

// Product of factors >= 1, or -1 where it does not fit: such a layout cannot exist.
int64_t product(std::initializer_list<int64_t> factors) {
  int64_t result = 1;
  for (const int64_t factor : factors)
    if (factor < 1 || __builtin_mul_overflow(result, factor, &result)) return -1;
  return result;
}

bool degrees_in_range(const ParallelismConfig& p) {
  return p.data_parallel_replicate_degree >= 1 && p.tensor_parallel_degree >= 1 &&
         p.context_parallel_degree >= 1 && p.pipeline_parallel_degree >= 1 &&
         p.expert_parallel_degree >= 1 &&
         (p.data_parallel_shard_degree >= 1 || p.data_parallel_shard_degree == -1);
}

void must_divide(Report& report, const char* what, int64_t total, const char* option,
                 int64_t degree) {
  if (degree > 1 && total > 0 && total % degree != 0)
    report.add(std::string("parallelism.") + option, std::to_string(degree),
               fmt::format("{} ({}) must be divisible by {} ({})", what, total, option, degree));
}

void check_mesh(const ParallelismConfig& p, int64_t world_size, Report& report) {
  const int64_t others = product({p.data_parallel_replicate_degree, p.context_parallel_degree,
                                  p.tensor_parallel_degree, p.pipeline_parallel_degree});
  const bool derived = p.data_parallel_shard_degree == -1;
  const int64_t all = derived ? others : product({others, p.data_parallel_shard_degree});
  const bool fits = derived ? others > 0 && world_size % others == 0 : all == world_size;
  if (fits) return;
  std::string text = fmt::format(
      "Invalid parallel dims: dp_replicate({}) * dp_shard({}) * cp({}) * tp({}) * pp({}) != "
      "WORLD_SIZE({})",
      p.data_parallel_replicate_degree, p.data_parallel_shard_degree, p.context_parallel_degree,
      p.tensor_parallel_degree, p.pipeline_parallel_degree, world_size);
  if (derived)
    text += fmt::format(
        "; data_parallel_shard_degree -1 needs a world that is a multiple of the other degrees, "
        "which make {}",
        others);
  report.add("parallelism", "", text);
}

}  // namespace

Degrees resolve_degrees(const ParallelismConfig& p, int64_t world_size) {
  if (!degrees_in_range(p)) return {};
  Degrees d{p.data_parallel_replicate_degree, p.data_parallel_shard_degree,
            p.context_parallel_degree,        p.tensor_parallel_degree,
            p.pipeline_parallel_degree,       p.expert_parallel_degree};
  const int64_t others = product({d.dp_replicate, d.cp, d.tp, d.pp});
  if (others < 1) return {};
  if (d.dp_shard == -1) d.dp_shard = world_size % others == 0 ? world_size / others : 1;
  return product({others, d.dp_shard}) == world_size ? d : Degrees{};
}

int64_t resolved_global_batch_size(const TrainerConfig& config, int64_t world_size) {
  if (config.training.global_batch_size != -1) return config.training.global_batch_size;
  return config.training.local_batch_size * resolve_degrees(config.parallelism, world_size).dp();
}

int64_t accumulation_steps(const TrainerConfig& config, int64_t world_size) {
  return div_exact(
      resolved_global_batch_size(config, world_size),
      config.training.local_batch_size * resolve_degrees(config.parallelism, world_size).dp());
}

void check_training(const TrainerConfig& config, const WorldFacts& world, Report& report) {
  const TrainingConfig& t = config.training;
  if (t.global_batch_size == 0 || t.global_batch_size < -1)
    report.add("training.global_batch_size", std::to_string(t.global_batch_size),
               "must be positive, or -1 for local_batch_size times the data-parallel degree");
  if (t.dtype == "bfloat16")
    report.warn(
        "training.dtype=bfloat16: parameters and optimizer state are stored in bfloat16, small "
        "updates may vanish");
  if (t.enable_cpu_offload)
    report.warn(
        "training.enable_cpu_offload has no effect: with the CPU executor everything rests in host "
        "memory");
  if (!t.max_wall_time.empty()) {
    try {
      parse_duration(t.max_wall_time);
    } catch (const Error& error) {
      report.add("training.max_wall_time", t.max_wall_time, error.what());
    }
  }
  if (!config.hf_model.empty() && config.model_spec.flavor != "from_config")
    report.warn("hf_model has no effect: the sizes of this model do not come from a config.json");
  if (config.dump_folder.empty())
    report.add("dump_folder", "",
               "must not be empty: it is the root of everything that is written");
  if (config.hf_assets_path.ends_with("tokenizer.model"))
    report.add("hf_assets_path", config.hf_assets_path,
               "name the folder, not the file; it must hold tokenizer.json (or vocab.json and "
               "merges.txt)");
  else if (world.reads_files && !std::filesystem::exists(config.hf_assets_path))
    report.warn(fmt::format("HF assets path {} does not exist!", config.hf_assets_path));
}

void check_parallelism(const TrainerConfig& config, const WorldFacts& world, Report& report) {
  const ParallelismConfig& p = config.parallelism;
  if (p.data_parallel_shard_degree != -1 && p.data_parallel_shard_degree < 1)
    report.add("parallelism.data_parallel_shard_degree",
               std::to_string(p.data_parallel_shard_degree),
               "must be at least 1, or -1 for what the other degrees leave");
  if (!degrees_in_range(p)) return;
  check_mesh(p, world.world_size, report);

  const int64_t t = p.tensor_parallel_degree;
  if (world.model) {
    must_divide(report, "n_heads", world.model->n_heads, "tensor_parallel_degree", t);
    must_divide(report, "n_kv_heads", world.model->n_kv_heads, "tensor_parallel_degree", t);
    must_divide(report, "hidden size of the feed-forward", world.model->ffn_hidden_dim,
                "tensor_parallel_degree", t);
  }
  const int64_t e = p.expert_parallel_degree;
  if (e > 1 && world.model && world.model->num_experts == 0) {
    report.warn("parallelism.expert_parallel_degree has no effect: the model is dense");
  } else if (e > 1) {
    const Degrees d = resolve_degrees(p, world.world_size);
    const int64_t inner = d.dp_shard * d.cp * d.tp;
    if (inner % e != 0)
      report.add(
          "parallelism.expert_parallel_degree", std::to_string(e),
          fmt::format("expert_parallel_degree ({}) must divide dp_shard * cp * tp ({})", e, inner));
    if (world.model)
      must_divide(report, "number of experts", world.model->num_experts, "expert_parallel_degree",
                  e);
  }
  if (p.context_parallel_load_balancer == "ptrr" && !p.context_parallel_ptrr_mask_key)
    report.add("parallelism.context_parallel_ptrr_mask_key", "None",
               "the ptrr balancer needs the key of a mask of the model; a causal model has none: "
               "use headtail");
  if (const std::string& csv = p.pipeline_parallel_schedule_csv;
      !csv.empty() && !std::filesystem::is_regular_file(csv))
    report.add("parallelism.pipeline_parallel_schedule_csv", csv, "there is no such file");
}

void check_batch(const TrainerConfig& config, const WorldFacts& world, Report& report) {
  const TrainingConfig& t = config.training;
  const ParallelismConfig& p = config.parallelism;
  if (t.local_batch_size < 1 || t.seq_len < 1 || !degrees_in_range(p))
    return;  // reported by the field itself
  const Degrees d = resolve_degrees(p, world.world_size);

  const int64_t per_step = product({t.local_batch_size, d.dp()});
  const int64_t microbatch_tokens = product({t.local_batch_size, t.seq_len});
  if (microbatch_tokens < 0 || microbatch_tokens > kMostMicrobatchTokens) {
    report.add("training.local_batch_size", std::to_string(t.local_batch_size),
               fmt::format("times seq_len ({}) must be at most {} tokens; a larger step is made of "
                           "several microbatches, with --training.global_batch_size",
                           t.seq_len, kMostMicrobatchTokens));
  } else if (t.global_batch_size > 0 &&
             static_cast<double>(t.global_batch_size) * static_cast<double>(t.seq_len) >
                 kMostStepTokens) {
    report.add("training.global_batch_size", std::to_string(t.global_batch_size),
               fmt::format("times seq_len ({}) must be at most {:.0e} tokens", t.seq_len,
                           kMostStepTokens));
  } else if (t.global_batch_size > 0 && t.global_batch_size % per_step != 0) {
    report.add(
        "training.global_batch_size", std::to_string(t.global_batch_size),
        fmt::format(
            "global batch size must be multiple of local batch size times data-parallel degree "
            "({} % ({} * {}) != 0)",
            t.global_batch_size, t.local_batch_size, d.dp()));
  }
  const int64_t microbatch = p.pipeline_parallel_microbatch_size;
  if (p.pipeline_parallel_degree > 1 && microbatch > 0 && t.local_batch_size % microbatch != 0)
    report.add(
        "training.local_batch_size", std::to_string(t.local_batch_size),
        fmt::format(
            "local_batch_size ({}) must be divisible by pipeline_parallel_microbatch_size ({})",
            t.local_batch_size, microbatch));

  const int64_t tp = p.enable_sequence_parallel ? p.tensor_parallel_degree : 1;
  const int64_t cp = p.context_parallel_degree;
  const bool headtail = cp > 1 && p.context_parallel_load_balancer == "headtail";
  const int64_t q = product({cp, headtail ? std::lcm(int64_t{2}, tp) : tp});
  if (q < 1 || t.seq_len % q != 0)
    report.add(
        "training.seq_len", std::to_string(t.seq_len),
        fmt::format("Training sequence length ({}) must be divisible by {} for the configured "
                    "sequence/context parallelism.",
                    t.seq_len, q));
}

}  // namespace rhea::config
