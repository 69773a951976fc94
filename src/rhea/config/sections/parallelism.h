// Section `parallelism`: how the one graph is cut over ranks.
#pragma once
#include "rhea/config/visitor.h"

namespace rhea {

// Ranks along each way of cutting the graph.
struct ParallelismConfig : Config {
  int64_t data_parallel_replicate_degree = 1;
  int64_t data_parallel_shard_degree = -1;
  std::string fsdp_reshard_after_forward = "default";
  int64_t tensor_parallel_degree = 1;
  bool enable_sequence_parallel = true;
  int64_t context_parallel_degree = 1;
  std::optional<std::string> context_parallel_load_balancer = "headtail";
  std::optional<std::string> context_parallel_ptrr_mask_key;
  int64_t expert_parallel_degree = 1;
  int64_t pipeline_parallel_degree = 1;
  int64_t pipeline_parallel_microbatch_size = 1;
  std::string pipeline_parallel_schedule = "1F1B";
  std::string pipeline_parallel_schedule_csv;
  std::optional<int64_t> pipeline_parallel_layers_per_stage;
  int64_t pipeline_parallel_first_stage_less_layers = 1;
  int64_t pipeline_parallel_last_stage_less_layers = 1;
  std::optional<std::vector<std::vector<std::string>>> module_fqns_per_model_part;

  void fields(Visitor& v) override {
    v("data_parallel_replicate_degree", data_parallel_replicate_degree,
      "replicas of the model; DDP with shard degree 1, HSDP with both above 1", at_least(1));
    v("data_parallel_shard_degree", data_parallel_shard_degree,
      "FSDP degree; -1 = what the other degrees leave of the world");
    v("fsdp_reshard_after_forward", fsdp_reshard_after_forward,
      "free gathered weights after forward; default = unless pipeline parallel is on",
      one_of{"default", "always", "never"});
    v("tensor_parallel_degree", tensor_parallel_degree,
      "must divide query heads and key-value heads", at_least(1));
    v("enable_sequence_parallel", enable_sequence_parallel,
      "with tensor parallel: norms and residual stream are sharded over tokens");
    v("context_parallel_degree", context_parallel_degree, "ranks that share the tokens of a row",
      at_least(1));
    v("context_parallel_load_balancer", context_parallel_load_balancer,
      "how context-parallel ranks share the causal triangle", one_of{"headtail", "ptrr"});
    v("context_parallel_ptrr_mask_key", context_parallel_ptrr_mask_key,
      "mask that drives the ptrr balancer");
    v("expert_parallel_degree", expert_parallel_degree,
      "must divide dp_shard * cp * tp and the number of experts", at_least(1));
    v("pipeline_parallel_degree", pipeline_parallel_degree, "pipeline ranks", at_least(1));
    v("pipeline_parallel_microbatch_size", pipeline_parallel_microbatch_size,
      "sequences per pipeline microbatch", at_least(1));
    v("pipeline_parallel_schedule", pipeline_parallel_schedule,
      "order of microbatches on the pipeline",
      one_of{"GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble",
             "ZBVZeroBubble", "DualPipeV"},
      any_case);
    v("pipeline_parallel_schedule_csv", pipeline_parallel_schedule_csv,
      "file of actions per rank; empty = none");
    v("pipeline_parallel_layers_per_stage", pipeline_parallel_layers_per_stage,
      "None = one or two stages per rank, as the schedule needs", at_least(1));
    v("pipeline_parallel_first_stage_less_layers", pipeline_parallel_first_stage_less_layers,
      "weight of the embedding in layers", at_least(0));
    v("pipeline_parallel_last_stage_less_layers", pipeline_parallel_last_stage_less_layers,
      "weight of final norm and head in layers", at_least(0));
    v("module_fqns_per_model_part", module_fqns_per_model_part,
      "explicit stages: modules separated by commas, stages by semicolons; every module exactly "
      "once");
    v.alias("num_pp_microbatches", "parallelism.pipeline_parallel_microbatch_size",
            "= local_batch_size / pipeline_parallel_microbatch_size");
    v.alias("enable_async_tensor_parallel", "compile.enable_async_tensor_parallel",
            "older place of compile.enable_async_tensor_parallel");
    v.no_effect("spmd_backend", OptionType::text, "default", "there is one partitioner");
    v.no_effect("enable_fsdp_symm_mem", OptionType::boolean, "false",
                "collectives choose their memory themselves");
  }
};

}  // namespace rhea
