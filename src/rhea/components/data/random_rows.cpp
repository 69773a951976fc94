// Rows drawn from a counter.
#include "rhea/components/data/random_rows.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "rhea/base/error.h"

namespace rhea::data {

RandomRows::RandomRows(const DataLoaderOptions& options)
    : key_(rng_key(options.seed, "random tokens")),
      vocab_size_(static_cast<uint64_t>(options.vocab_size)),
      rows_per_batch_(options.rows),
      dp_rank_(options.dp_rank),
      dp_size_(options.dp_size) {
  if (options.vocab_size < 1)
    throw Error("dataset random: the size of the vocabulary is {}, expected at least 1",
                options.vocab_size);
}

bool RandomRows::next_row(const RowView& row) {
  const int64_t batch = next_ / rows_per_batch_;
  const int64_t global = (batch * dp_size_ + dp_rank_) * rows_per_batch_ + next_ % rows_per_batch_;
  ++next_;
  // One id more than the row is long: the label of its last position.
  const uint64_t first = static_cast<uint64_t>(global) * (row.input.size() + 1);
  const auto id = [&](size_t i) {
    return static_cast<int32_t>(rng_below(key_, first + i, vocab_size_));
  };
  for (size_t i = 0; i < row.input.size(); ++i) {
    row.input[i] = i == 0 ? id(0) : row.labels[i - 1];
    row.labels[i] = id(i + 1);
  }
  std::iota(row.positions.begin(), row.positions.end(), 0);
  return true;
}

Snapshot RandomRows::snapshot() const {
  return [row = next_] { return nlohmann::json{{"row", row}}; };
}

// Ranks read in step, so the rows that all of them have taken are the first ones of the stream.
void RandomRows::restore(std::span<const nlohmann::json> ranks) {
  const auto row = ranks.front().at("row").get<int64_t>();
  if (row < 0) throw Error("loader state: row {} cannot be negative", row);
  next_ = row * static_cast<int64_t>(ranks.size()) / dp_size_;
}

std::string RandomRows::description() const {
  return fmt::format("random dataset: tokens uniform in [0, {})", vocab_size_);
}

}  // namespace rhea::data
