// Files that a run writes beside checkpoints: metrics and the structured trace.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/runs/run_test.h"

#include "rhea/base/json.h"

namespace rhea {
namespace {

using Trace = RunTest;

std::vector<nlohmann::json> lines(const fs::path& file) {
  std::vector<nlohmann::json> found;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) found.push_back(parse_json(line));
  return found;
}

TEST_F(Trace, EverySpanBeginsAndEndsAndTheScalarsAreThere) {
  const Outcome outcome =
      train({"--training.steps=3", "--checkpoint.enable", "--validator.enable",
             "--validator.freq=2", "--validator.steps=1", "--validator.dataloader.dataset=jsonl",
             "--validator.dataloader.dataset_path=" + (temp_.path() / "text.jsonl").string()});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  std::map<std::string, int> count;
  for (const auto& event : lines(dump() / "structured_logs/rank_0.jsonl")) {
    ++count[event.at("log_type_name")];
    const std::string name = event.at("log_type_name");
    if (name.ends_with("_valid_tokens")) {
      EXPECT_GT(event.at("value").get<double>(), 0);
    }
  }
  for (const char* span : {"step", "fetching_batch", "post_dataloading_process", "fwd_bwd", "optim",
                           "collect_dist_metrics", "checkpoint_save", "checkpoint_load", "eval",
                           "model_parallelism_init", "model.build", "dataloader.build"}) {
    EXPECT_GT(count[std::string(span) + "_start"], 0) << span;
    EXPECT_EQ(count[std::string(span) + "_start"], count[std::string(span) + "_end"]) << span;
  }
  EXPECT_EQ(count["local_valid_tokens"], 3);
  EXPECT_EQ(count["global_valid_tokens"], 3);
  int num_validations = 0;
  for (const auto& row : lines(dump() / "metrics/rank_0.jsonl")) {
    if (!row.contains("validation_metrics/loss")) continue;
    ++num_validations;
    for (const char* key :
         {"max_active(GiB)", "max_active(%)", "max_reserved(GiB)", "max_reserved(%)"})
      EXPECT_GT(row.at(std::string("validation_metrics/memory/") + key).get<double>(), 0) << key;
  }
  EXPECT_EQ(num_validations, 2);
}

}  // namespace
}  // namespace rhea
