// Random tokens: the data set `random`, for runs whose speed matters and not their text.
#pragma once
#include "rhea/base/rng.h"
#include "rhea/components/data/row_source.h"

namespace rhea::data {

// Endless rows of ids uniform in [0, vocab_size), each a function of (seed, number of the row over
// all ranks); one document per row, every position has a label.
class RandomRows : public RowSource {
 public:
  // Throws Error where the size of the vocabulary is not known.
  explicit RandomRows(const DataLoaderOptions& options);

  bool next_row(const RowView& row) override;
  Snapshot snapshot() const override;
  void restore(std::span<const nlohmann::json> ranks) override;
  std::string description() const override;

 private:
  RngKey key_;
  uint64_t vocab_size_;
  int64_t rows_per_batch_, dp_rank_, dp_size_;
  int64_t next_ = 0;  // row of this rank
};

}  // namespace rhea::data
