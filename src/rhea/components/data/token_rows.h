// Ready rows: the data set `tokens`, read in order without tokenizer or packing.
#pragma once
#include <filesystem>
#include <vector>

#include "rhea/components/data/row_source.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea::data {

// Files with `input` [steps, rows, seq_len] or [rows, seq_len], i32 or i64; `labels` and
// `positions` of the same shape, or absent: then the input shifted inside the row (the last
// position has no label), and 0 .. seq_len - 1.
//
// All rows of all files are one list. A batch of all ranks takes dp_size * rows of them, in the
// order of the ranks.
class TokenRows : public RowSource {
 public:
  // Throws Error naming file, tensor and shapes.
  TokenRows(const std::vector<std::filesystem::path>& files, bool infinite,
            const DataLoaderOptions& options);

  bool next_row(const RowView& row) override;
  Snapshot snapshot() const override;
  void restore(std::span<const nlohmann::json> ranks) override;
  std::string description() const override;

 private:
  struct File {
    safetensors::File file;
    int64_t first_row = 0;
    const safetensors::TensorView* input = nullptr;
    const safetensors::TensorView* labels = nullptr;
    const safetensors::TensorView* positions = nullptr;
  };
  void open(const std::filesystem::path& path);
  const safetensors::TensorView* find(const File& file, const char* name) const;
  void check_ids(const File& file, int64_t row, const RowView& view) const;

  int64_t seq_len_, rows_per_batch_, vocab_size_;
  int64_t dp_rank_, dp_size_;
  bool infinite_;
  std::vector<File> files_;
  int64_t num_rows_ = 0;
  int64_t next_ = 0;  // row of this rank
};

}  // namespace rhea::data
