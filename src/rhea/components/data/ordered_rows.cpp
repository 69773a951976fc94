#include "rhea/components/data/ordered_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "rhea/base/error.h"
#include "rhea/base/log.h"

namespace rhea::data {

std::string NumberedRows::place(int64_t number) const {
  return fmt::format("{}: row {}", description(), number);
}

void fill_from_input(const RowView& row) {
  std::copy(row.input.begin() + 1, row.input.end(), row.labels.begin());
  row.labels.back() = kIgnoreLabel;
  std::iota(row.positions.begin(), row.positions.end(), 0);
}

OrderedRows::OrderedRows(std::unique_ptr<const NumberedRows> rows, std::string name, bool infinite,
                         const DataLoaderOptions& options)
    : rows_(std::move(rows)),
      name_(std::move(name)),
      infinite_(infinite),
      seq_len_(options.seq_len),
      vocab_size_(options.vocab_size),
      rows_per_batch_(options.rows),
      dp_rank_(options.dp_rank),
      dp_size_(options.dp_size) {
  if (rows_->num_rows().value_or(1) < 1)
    throw Error("dataset {}: {} holds no rows", name_, rows_->description());
}

bool OrderedRows::next_row(const RowView& row) {
  const int64_t batch = next_ / rows_per_batch_;
  const int64_t global = (batch * dp_size_ + dp_rank_) * rows_per_batch_ + next_ % rows_per_batch_;
  const auto num_rows = rows_->num_rows();
  if (num_rows && global >= *num_rows && !infinite_) {
    log::warning("data", "Dataset {} has run out of data", name_);
    return false;
  }
  const int64_t number = num_rows ? global % *num_rows : global;
  if (number == 0 && global > 0)
    log::warning("data", "Dataset {} is being re-looped (epoch {})", name_, global / *num_rows);
  ++next_;
  rows_->read(number, row);
  check(number, row);
  return true;
}

void OrderedRows::check(int64_t number, const RowView& row) const {
  const auto check_range = [&](const char* name, std::span<const int32_t> values, int64_t limit,
                               bool may_ignore) {
    const auto bad = std::find_if(values.begin(), values.end(), [&](int32_t value) {
      return (value < 0 && !(may_ignore && value == kIgnoreLabel)) || (limit > 0 && value >= limit);
    });
    if (bad == values.end()) return;
    throw Error("{}, position {}: {} is {}, {}{}", rows_->place(number), bad - values.begin(), name,
                *bad, limit > 0 ? fmt::format("outside [0, {})", limit) : "negative",
                may_ignore ? fmt::format(" and not {} (no label)", kIgnoreLabel) : "");
  };
  check_range("input", row.input, vocab_size_, false);
  check_range("label", row.labels, vocab_size_, true);
  // Positions index tables of seq_len rows, and a document is a run of them.
  check_range("position", row.positions, seq_len_, false);
  for (size_t i = 1; i < row.positions.size(); ++i) {
    const int32_t position = row.positions[i];
    if (position != 0 && position != row.positions[i - 1] + 1)
      throw Error("{}, position {}: {} neither restarts at 0 nor follows the one before it ({})",
                  rows_->place(number), i, position, row.positions[i - 1]);
  }
}

Snapshot OrderedRows::snapshot() const {
  return [row = next_] { return nlohmann::json{{"row", row}}; };
}

// Ranks read in step, so the rows that all of them have taken are the first ones of the list.
void OrderedRows::restore(std::span<const nlohmann::json> ranks) {
  const auto row = ranks.front().at("row").get<int64_t>();
  if (row < 0) throw Error("loader state: row {} cannot be negative", row);
  next_ = row * static_cast<int64_t>(ranks.size()) / dp_size_;
}

std::string OrderedRows::description() const {
  return fmt::format("{} dataset from {}", name_, rows_->description());
}

}  // namespace rhea::data
