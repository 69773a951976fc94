// Rows of several sources, drawn by weight.
#pragma once
#include <memory>
#include <vector>

#include "rhea/components/data/row_source.h"

namespace rhea::data {

class Mixture : public RowSource {
 public:
  struct Source {
    std::unique_ptr<RowSource> rows;
    double weight = 1;
  };
  // Row number n of a run (over all ranks) comes from a source that is a function of (options.seed,
  // n) alone. A source that has run out ends the mixture (on_first_exhausted), or the others go on
  // with their weights (all_exhausted).
  Mixture(std::vector<Source> sources, const DataLoaderOptions& options);

  bool next_row(const RowView& row) override;
  Snapshot snapshot() const override;
  void restore(std::span<const nlohmann::json> ranks) override;
  DataStats stats() const override;
  std::string description() const override;

 private:
  size_t draw(int64_t row) const;

  std::vector<Source> sources_;
  std::vector<bool> exhausted_;
  uint64_t seed_;
  int64_t dp_rank_, dp_size_;
  StoppingStrategy stopping_;
  int64_t next_ = 0;
};

}  // namespace rhea::data
