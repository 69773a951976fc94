// Ready rows of tokens by number: what a data set needs to be when it is no text.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace rhea::data {

// Label of a position that has none.
inline constexpr int32_t kIgnoreLabel = -100;

// One row of a batch, to be filled: seq_len entries each. Labels may be kIgnoreLabel;
// positions count up from 0 and restart at 0 where a document begins.
struct RowView {
  std::span<int32_t> input;      // token ids
  std::span<int32_t> labels;     // the token that follows each
  std::span<int32_t> positions;  // in the document
  std::span<int32_t> is_token;   // 1; a source that pads sets 0 where it does
};

// The loader keeps the place, deals the rows out to the ranks and starts over at the end.
class NumberedRows {
 public:
  virtual ~NumberedRows() = default;
  // At least 1; absent: without end.
  virtual std::optional<int64_t> num_rows() const = 0;
  // Row `number`, the same whenever it is asked for. May be called by another thread than the one
  // that opened the data set, by one at a time.
  virtual void read(int64_t number, const RowView& row) const = 0;
  // Where the rows are, for the log: "tokens uniform in [0, 10)".
  virtual std::string description() const = 0;
  // Where row `number` is, for messages: "rows.safetensors: row 3".
  virtual std::string place(int64_t number) const;
};

// Labels of the tokens that follow in the row, none at its end; positions of one document.
void fill_from_input(const RowView& row);

}  // namespace rhea::data
