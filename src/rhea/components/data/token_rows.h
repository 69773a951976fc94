// Ready rows: the data set `tokens`, read in order without tokenizer or packing.
#pragma once
#include <filesystem>
#include <vector>

#include "rhea/components/data/numbered_rows.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea::data {

// Files with `input` [steps, rows, seq_len] or [rows, seq_len], i32 or i64; `labels` and
// `positions` of the same shape, or absent: then the input shifted inside the row (the last
// position has no label), and 0 .. seq_len - 1.
//
// All rows of all files are one list.
class TokenRows : public NumberedRows {
 public:
  // Throws Error naming file, tensor and shapes.
  TokenRows(const std::vector<std::filesystem::path>& files, int64_t seq_len);

  std::optional<int64_t> num_rows() const override { return num_rows_; }
  void read(int64_t number, const RowView& row) const override;
  std::string description() const override;
  std::string place(int64_t number) const override;

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
  const File& file_of(int64_t number) const;

  int64_t seq_len_;
  std::vector<File> files_;
  int64_t num_rows_ = 0;
};

}  // namespace rhea::data
