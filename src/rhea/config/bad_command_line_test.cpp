// Command lines that must be refused, with the words that the refusal must contain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>

#include "rhea/config/test_recipe.h"

namespace rhea::config {
namespace {

struct Case {
  const char* line;
  std::vector<const char*> contains;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.line; }

// Everything that is said about `line`: of the line itself and, as `rhea train` does, of the
// values.
Report everything(const std::string& line, const WorldFacts& world = {}) {
  CommandLine parsed = parse_command_line(words(line), test_registry());
  parsed.report.append(validate(parsed.config, world));
  return parsed.report;
}

class BadLine : public testing::TestWithParam<Case> {};

TEST_P(BadLine, IsRefusedWithItsReason) {
  const Report report =
      everything(std::string("--module llama3 --config llama3_debugmodel ") + GetParam().line);
  ASSERT_EQ(report.problems.size(), 1U) << GetParam().line << "\n" << report.text();
  for (const char* part : GetParam().contains)
    EXPECT_THAT(to_string(report.problems[0]), testing::HasSubstr(part)) << GetParam().line;
}

INSTANTIATE_TEST_SUITE_P(
    Syntax, BadLine,
    testing::Values(
        Case{"--training.stpes 10", {"--training.stpes", "did you mean --training.steps"}},
        Case{"--seq_len 10", {"--seq_len", "--training.seq_len"}},
        Case{"--trainig.seq_len 10", {"--training.seq_len"}},
        Case{"--checkpoint.steps 10", {"--checkpoint.steps", "did you mean"}},
        Case{"--zzzzzzzzzzzz 10", {"unknown option --zzzzzzzzzzzz", "--help"}},
        Case{"--training.steps", {"--training.steps requires a value"}},
        Case{"--training.steps --compile.enable", {"--training.steps requires a value"}},
        Case{"--training.steps ten", {"training.steps", "'ten'", "expected an integer"}},
        Case{"--training.steps 1.5", {"'1.5'", "expected an integer"}},
        Case{"--training.steps 1__0", {"'1__0'", "expected an integer"}},
        Case{"--training.steps 99999999999999999999", {"expected an integer"}},
        Case{"--training.steps=", {"training.steps", "expected an integer"}},
        Case{"--training.steps None", {"'None'", "expected an integer"}},
        Case{"--training.max_norm big", {"'big'", "expected a finite number"}},
        Case{"--training.max_norm nan", {"expected a finite number"}},
        Case{"--training.max_norm inf", {"expected a finite number"}},
        Case{"--debug.seed x", {"'x'", "expected an integer or None"}},
        Case{"--compile.enable=False", {"--compile.enable=False", "--compile.no_enable"}},
        Case{"--compile.enable=true", {"takes no value", "--compile.no_enable"}},
        Case{"--compile.enable false", {"--compile.enable false", "--compile.no_enable"}},
        Case{"--compile.no_enable=1", {"takes no value"}},
        Case{"--training.steps 5 --training.steps 6", {"given twice", "5", "6"}},
        Case{"--training.steps 5 --training.steps 5", {"given twice"}},
        Case{"--training.seq-len 64 --training.seq_len 128",
             {"--training.seq-len 64", "--training.seq_len 128"}},
        Case{"--compile.enable --compile.no_enable", {"given twice", "true", "false"}},
        Case{"--training.seq_len 64 --training.max_context_length 128",
             {"64", "128", "max_context_length"}},
        Case{"training.steps=10", {"unexpected word 'training.steps=10'", "--section.option"}},
        Case{"--training 10", {"--training is a section", "--training.option"}},
        Case{"--optimizer.param_groups.5.pattern x", {"has 1 items", "from 0 to 1"}},
        Case{"--optimizer.param_groups.a.pattern x", {"must be a number"}},
        Case{"--optimizer.param_groups x", {"list of structs", "--optimizer.param_groups.0.field"}},
        Case{"--optimizer.param_groups.0.optimizer_kwargs.betas 0.9,x",
             {"betas", "'x'", "finite number"}},
        Case{"--model_spec.name x", {"model_spec", "set in code only"}},
        Case{"--model.name x", {"--module and --config"}},
        Case{"--fault_tolerance.enable", {"TorchFT"}},
        Case{"--graph_trainer.mode x", {"GraphTrainer"}},
        Case{"--lora.rank 8", {"converter given in code"}},
        Case{"activation-checkpoint:sometimes",
             {"activation_checkpoint.mode", "sometimes", "selective"}},
        Case{"training:x", {"no section with alternatives"}},
        Case{"checkpoint:x", {"no section with alternatives"}},
        Case{"loss:Hinge", {"Hinge", "CrossEntropyLoss, ChunkedLossWrapper"}},
        Case{"loss:CrossEntropyLoss --loss.num_chunks 4", {"unknown option --loss.num_chunks"}},
        Case{"--training.gc_freq often", {"training.gc_freq", "'often'", "expected an integer"}}),
    [](const auto& test) { return "n" + std::to_string(test.index); });

INSTANTIATE_TEST_SUITE_P(
    Values, BadLine,
    testing::Values(
        Case{"--training.local_batch_size 0", {"training.local_batch_size = 0", "at least 1"}},
        Case{"--training.global_batch_size 0", {"global_batch_size = 0", "positive, or -1"}},
        Case{"--training.global_batch_size -2", {"global_batch_size = -2"}},
        Case{"--training.global_batch_size 12",
             {"global batch size must be multiple of local batch size times data-parallel degree "
              "(12 % (8 * 1) != 0)"}},
        Case{"--training.local_batch_size 100000000",
             {"local_batch_size = 100000000: times seq_len", "at most 2147483647 tokens",
              "global_batch_size"}},
        Case{"--training.local_batch_size 4611686018427387904", {"at most 2147483647 tokens"}},
        Case{"--training.global_batch_size 4611686018427387904",
             {"global_batch_size = 4611686018427387904", "at most 1e+12 tokens"}},
        Case{"--training.steps 9223372036854775807", {"training.steps", "1000000000000000"}},
        Case{"--lr_scheduler.warmup_steps 9223372036854775807", {"lr_scheduler.warmup_steps"}},
        Case{"--lr_scheduler.total_steps 9223372036854775807", {"lr_scheduler.total_steps"}},
        Case{"--executor.num_threads 1025", {"executor.num_threads = 1025", "between 0 and 1024"}},
        Case{"--executor.num_threads 4294967297", {"executor.num_threads = 4294967297"}},
        Case{"--dataloader.num_workers 4294967296", {"num_workers = 4294967296", "1024"}},
        Case{"--dataloader.prefetch_factor 4294967297", {"prefetch_factor = 4294967297"}},
        Case{"--dataloader.num_packing_bins 4294967297", {"num_packing_bins = 4294967297"}},
        Case{"--training.seq_len 0", {"training.seq_len = 0", "at least 1"}},
        Case{"--training.max_norm 0", {"training.max_norm = 0", "greater than 0"}},
        Case{"--training.dtype float16", {"'float16'", "float32, bfloat16"}},
        Case{"--training.mixed_precision_reduce bfloat16", {"mixed_precision_reduce", "float32"}},
        Case{"--training.max_wall_time tomorrow", {"max_wall_time", "3h30m"}},
        Case{"--training.max_wall_time 5m3h", {"max_wall_time", "units"}},
        Case{"--training.max_wall_time 1000000000d", {"max_wall_time", "100 years"}},
        Case{"--training.max_wall_time 99999999999999999999s", {"max_wall_time", "units"}},
        Case{"--training.num_tokens_per_train_step 1000", {"1000", "128"}},
        Case{"--training.num_tokens_per_microbatch_per_dp_rank 100", {"100", "128"}},
        Case{"--training.num_tokens_per_microbatch_per_dp_rank 128 --training.local_batch_size 4",
             {"4", "means 1"}},
        Case{"--parallelism.num_pp_microbatches 3", {"3", "8"}},
        Case{"--parallelism.num_pp_microbatches 0", {"at least 1"}},
        Case{"--parallelism.data_parallel_shard_degree 0",
             {"data_parallel_shard_degree = 0", "-1"}},
        Case{"--parallelism.data_parallel_replicate_degree 2",
             {"Invalid parallel dims: dp_replicate(2) * dp_shard(-1) * cp(1) * tp(1) * pp(1) != "
              "WORLD_SIZE(1)"}},
        Case{"--parallelism.data_parallel_shard_degree 4", {"dp_shard(4)", "!= WORLD_SIZE(1)"}},
        Case{"--parallelism.pipeline_parallel_degree 0",
             {"pipeline_parallel_degree = 0", "at least 1"}},
        Case{"--parallelism.context_parallel_load_balancer ring", {"'ring'", "headtail, ptrr"}},
        Case{"--parallelism.context_parallel_load_balancer=", {"''", "headtail, ptrr"}},
        Case{"--parallelism.context_parallel_load_balancer ptrr",
             {"context_parallel_ptrr_mask_key"}},
        Case{"--parallelism.pipeline_parallel_schedule 2F2B", {"'2F2B'", "Interleaved1F1B"}},
        Case{"--parallelism.pipeline_parallel_schedule_csv nowhere.csv",
             {"nowhere.csv", "no such file"}},
        Case{"--parallelism.expert_parallel_degree 2",
             {"expert_parallel_degree (2) must divide dp_shard * cp * tp (1)"}},
        Case{"--compile.components model,lsos", {"'lsos'", "grad_clip"}},
        Case{"--compile.backend magic", {"'magic'", "native"}},
        Case{"--compile.enable_async_tensor_parallel --compile.no_enable",
             {"Async TP requires 'model' in --compile.components and --compile.enable"}},
        Case{"--parallelism.enable_async_tensor_parallel --compile.components loss",
             {"Async TP requires 'model'"}},
        Case{"activation-checkpoint:memory-budget --compile.no_enable",
             {"Memory budget activation checkpointing requires the model to be compiled: "}},
        Case{"--activation_checkpoint.memory_budget 1.5",
             {"memory_budget = 1.5", "between 0 and 1"}},
        Case{"--executor.num_threads -1", {"between 0 and 1024"}},
        Case{"--optimizer.param_groups=", {"optimizer.param_groups", "at least one group"}},
        Case{"--optimizer.param_groups.0.pattern (", {"pattern", "no regular expression"}},
        Case{"--optimizer.param_groups.0.optimizer_kwargs.lr -1", {"lr = -1", "at least 0"}},
        Case{"--lr_scheduler.min_lr_factor 2", {"between 0 and 1"}},
        Case{"--loss.num_chunks 0", {"loss.num_chunks = 0"}},
        Case{"--checkpoint.folder=", {"The 'folder' field cannot be empty."}},
        Case{"--checkpoint.interval 0", {"checkpoint.interval = 0"}},
        Case{"--checkpoint.initial_load_path assets/x",
             {"initial_load_path must be an absolute path", ": assets/x"}}),
    [](const auto& test) { return "n" + std::to_string(test.index); });

INSTANTIATE_TEST_SUITE_P(
    MoreValues, BadLine,
    testing::Values(
        Case{"--checkpoint.enable --checkpoint.initial_load_path /nonexistent/x",
             {"/nonexistent/x", "not a directory"}},
        Case{"--checkpoint.initial_load_in_hf --checkpoint.no_initial_load_model_only",
             {"initial_load_in_hf requires initial_load_model_only."}},
        Case{"--checkpoint.last_save_in_hf --checkpoint.no_last_save_model_only",
             {"last_save_in_hf requires last_save_model_only=True."}},
        Case{"--checkpoint.export_dtype int8", {"'int8'", "float16, bfloat16, float32"}},
        Case{"--checkpoint.keep_latest_k 1",
             {"We need to maintain at least 2 checkpoint replicas, "}},
        Case{"--checkpoint.keep_latest_k -3", {"keep_latest_k = -3"}},
        Case{"--checkpoint.load_step -2", {"load_step = -2", "at least -1"}},
        Case{"--checkpoint.exclude_from_loading model", {"the model cannot be excluded"}},
        Case{"--checkpoint.exclude_from_loading optimizer", {"lr_scheduler"}},
        Case{"--checkpoint.exclude_from_loading optimiser",
             {"'optimiser'", "optimizer, lr_scheduler, dataloader"}},
        Case{"--checkpoint.async_mode later", {"Invalid async_mode: later"}},
        Case{"--checkpoint.create_seed_checkpoint", {"--checkpoint.enable"}},
        Case{"--dataloader.on_bad_row ignore", {"'ignore'", "stop, skip"}},
        Case{
            "--dataloader.packing best",
            {"'best'", "concat, first_fit, greedy"},
        },
        Case{"--tokenizer.special_tokens_in_text keep", {"'keep'", "control, plain"}},
        Case{"--validator.freq 0", {"validator.freq = 0"}},
        Case{"--validator.steps 0", {"validation steps must be positive or -1"}},
        Case{"--metrics.log_freq 0", {"metrics.log_freq = 0"}},
        Case{"--metrics.peak_flops 0", {"peak_flops = 0", "greater than 0"}},
        Case{"--profiler.memory_snapshot_freq 0", {"memory_snapshot_freq = 0"}},
        Case{"--comm.mode torchcomms", {"'torchcomms'", "default, threads"}},
        Case{"--comm.port 70000", {"port = 70000", "between 0 and 65535"}},
        Case{"--debug.batch_invariant", {"Batch-invariant mode is not supported in pre-training."}},
        Case{"--hf_assets_path x/tokenizer.model", {"tokenizer.json"}},
        Case{"--dump_folder=", {"dump_folder", "must not be empty"}}),
    [](const auto& test) { return "n" + std::to_string(test.index); });

TEST(BadModule, TextsOfTheSpec) {
  const auto problems = [](const std::string& line) {
    std::string all;
    for (const Problem& p : parse_command_line(words(line), test_registry()).report.problems)
      all += to_string(p) + "\n";
    return all;
  };
  EXPECT_EQ(problems(""),
            "--module is required. Example: --module llama3 --config llama3_debugmodel\n"
            "--config is required. Example: --module llama3 --config llama3_debugmodel\n");
  EXPECT_EQ(problems("--module llama3"),
            "--config is required. Example: --module llama3 --config llama3_debugmodel. Available "
            "config functions of llama3: [llama3_debugmodel, llama3_8b]\n");
  EXPECT_EQ(problems("--module gpt"),
            "Cannot load module 'gpt'. For shorthands, supported modules are: [llama3, qwen3]\n");
  EXPECT_EQ(problems("--config llama3_debugmodel --module"), "--module requires a value\n");
  EXPECT_EQ(problems("--module llama3 --config"), "--config requires a value\n");
  EXPECT_EQ(problems("--module llama3 --config x"),
            "Config function 'x' not found in llama3. Available config functions: "
            "[llama3_debugmodel, llama3_8b]\n");
  EXPECT_EQ(problems("--module gpt --config x"),
            "Cannot load module 'gpt'. For shorthands, supported modules are: [llama3, qwen3]\n");
  EXPECT_EQ(problems("--module qwen3 --config qwen3_broken"), "no such flavor: 'x'\n");
  EXPECT_EQ(problems("--module llama3 --module qwen3 --config llama3_8b"),
            "--module given twice: llama3 and qwen3\n");
}

TEST(BadLines, AllProblemsAreReportedAtOnce) {
  WorldFacts world;
  world.model = ModelFacts{.n_layers = 4, .n_heads = 8, .n_kv_heads = 8, .ffn_hidden_dim = 768};
  const Report report = everything(
      "--module llama3 --config llama3_debugmodel --training.stpes 3 "
      "--parallelism.tensor_parallel_degree 3 "
      "--checkpoint.keep_latest_k 1",
      world);
  const std::string text = report.text();
  EXPECT_THAT(text, testing::HasSubstr("--training.stpes"));
  EXPECT_THAT(text, testing::HasSubstr("Invalid parallel dims"));
  EXPECT_THAT(text,
              testing::HasSubstr("n_kv_heads (8) must be divisible by tensor_parallel_degree (3)"));
  EXPECT_THAT(text,
              testing::HasSubstr("n_heads (8) must be divisible by tensor_parallel_degree (3)"));
  EXPECT_THAT(text, testing::HasSubstr("at least 2 checkpoint replicas"));
  EXPECT_THROW(report.raise(), Error);
}

TEST(BadLines, VocabularyOfTheLossIsTheModels) {
  WorldFacts world;
  world.model = ModelFacts{.vocab_size = 2048};
  const auto said = [&](const std::string& options) {
    return everything("--module llama3 --config llama3_debugmodel " + options, world).text();
  };
  EXPECT_THAT(said("--loss.loss_fn.global_vocab_size 2049"),
              testing::HasSubstr("loss.loss_fn.global_vocab_size = 2049: the model's vocabulary "
                                 "has 2048 entries"));
  EXPECT_THAT(said("--loss.loss_fn.global_vocab_size 2048"), testing::HasSubstr("has 0 problems"));
}

TEST(BadLines, SequenceRule) {
  WorldFacts world;
  world.world_size = 8;
  const auto said = [&](const std::string& options) {
    return everything("--module llama3 --config llama3_debugmodel " + options, world).text();
  };
  // q = tp without context parallelism, lcm(2, tp) * cp with head-tail balance, cp * tp without.
  EXPECT_THAT(
      said("--parallelism.tensor_parallel_degree 8 --training.seq_len 100"),
      testing::HasSubstr("Training sequence length (100) must be divisible by 8 for the configured "
                         "sequence/context parallelism."));
  EXPECT_THAT(said("--parallelism.context_parallel_degree 8 --training.seq_len 104"),
              testing::HasSubstr("Training sequence length (104) must be divisible by 16"));
  EXPECT_THAT(said("--parallelism.context_parallel_degree 8 --training.seq_len 104 "
                   "--parallelism.context_parallel_load_balancer None"),
              testing::Not(testing::HasSubstr("Training sequence length")));
  EXPECT_THAT(said("--parallelism.tensor_parallel_degree 8 --training.seq_len 100 "
                   "--parallelism.no_enable_sequence_parallel"),
              testing::Not(testing::HasSubstr("Training sequence length")));
}

TEST(BadLines, MoreRanksThanThisVersionHas) {
  WorldFacts world;
  world.world_size = 2;
  EXPECT_THAT(everything("--module llama3 --config llama3_debugmodel", world).text(),
              testing::HasSubstr("WORLD_SIZE is 2: this version trains with one rank"));
}

}  // namespace
}  // namespace rhea::config
