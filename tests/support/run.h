// Whole training runs inside a test: their command line, the metrics and weights that they leave.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rhea/base/error.h"

namespace rhea {
struct TrainerConfig;
}

namespace rhea::support {

using Words = std::vector<std::string>;

// One line of metrics/rank_0.jsonl that belongs to a training step.
struct StepRow {
  int64_t step = 0;
  double loss = 0, grad_norm = 0, lr = 0;
  int64_t tokens_seen = 0;
  bool operator==(const StepRow&) const = default;
};

struct RunResult {
  ExitCode code = ExitCode::ok;
  std::vector<StepRow> rows;
  // Parameters and optimizer state in memory at the end, by the names of checkpoints.
  std::map<std::string, std::vector<std::byte>> tensors;
};

// `rhea train` with these words inside this process, quiet. The words should ask for every step in
// the metrics (--metrics.log_freq=1). `change` is called with the finished config. What it throws
// reaches the caller.
RunResult train(const Words& words, const std::filesystem::path& dump_folder,
                const std::function<void(TrainerConfig&)>& change = {});

std::vector<StepRow> read_rows(const std::filesystem::path& dump_folder);

// Writes a `tokens` data set. `shape` is [steps, rows, seq_len]; no positions: 0 to
// seq_len - 1 in each row.
void write_tokens(const std::filesystem::path& file, const std::vector<int64_t>& shape,
                  std::span<const int32_t> input, std::span<const int32_t> labels,
                  std::span<const int32_t> positions = {});

// The words that train a llama of 2 layers of width 32 on 40 short documents for 12 steps of 2 rows
// of 64 tokens. `folder` gets its config.json and the text.
Words small_run(const std::filesystem::path& folder);

Words join(Words left, const Words& right);
// `words` with the one of the same option replaced: "--training.steps=5" for "--training.steps=12".
Words with_option(Words words, const std::string& option);

// "" when both have the same names and bits, else the first difference.
std::string difference(const std::map<std::string, std::vector<std::byte>>& a,
                       const std::map<std::string, std::vector<std::byte>>& b);
// The tensors of a full step folder, read through the checkpoint reader, and what resuming needs
// beside them (position of the data, counters) as "state.<part>".
std::map<std::string, std::vector<std::byte>> read_step(const std::filesystem::path& step_folder);

}  // namespace rhea::support
