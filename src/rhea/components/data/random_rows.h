// Random tokens: the data set `random`, for runs whose speed matters and not their text.
#pragma once
#include "rhea/base/rng.h"
#include "rhea/components/data/numbered_rows.h"

namespace rhea::data {

// Endless rows of ids uniform in [0, vocab_size), each a function of (seed, number); one document
// per row, every position has a label.
class RandomRows : public NumberedRows {
 public:
  // Throws Error where the size of the vocabulary is not known.
  RandomRows(uint64_t seed, int64_t vocab_size);

  std::optional<int64_t> num_rows() const override { return std::nullopt; }
  void read(int64_t number, const RowView& row) const override;
  std::string description() const override;

 private:
  RngKey key_;
  uint64_t vocab_size_;
};

}  // namespace rhea::data
