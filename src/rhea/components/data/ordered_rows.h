// Numbered rows as the rows of one rank, in order, from any place on.
#pragma once
#include <memory>
#include <string>

#include "rhea/components/data/numbered_rows.h"
#include "rhea/components/data/row_source.h"

namespace rhea::data {

// A batch of all ranks takes dp_size * rows rows, in the order of the ranks.
class OrderedRows : public RowSource {
 public:
  // `name` is that of the data set, for the log. Throws Error where there are no rows.
  OrderedRows(std::unique_ptr<const NumberedRows> rows, std::string name, bool infinite,
              const DataLoaderOptions& options);

  // Throws Error that names the place of a row with a token, label or position that cannot be.
  bool next_row(const RowView& row) override;
  Snapshot snapshot() const override;
  void restore(std::span<const nlohmann::json> ranks) override;
  std::string description() const override;

 private:
  void check(int64_t number, const RowView& row) const;

  std::unique_ptr<const NumberedRows> rows_;
  std::string name_;
  bool infinite_;
  int64_t seq_len_, vocab_size_, rows_per_batch_, dp_rank_, dp_size_;
  int64_t next_ = 0;  // row of this rank
};

}  // namespace rhea::data
