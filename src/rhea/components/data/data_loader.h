// Batches of token rows for training and validation, read, tokenised and packed in a background
// thread.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/components/data/options.h"

namespace rhea::data {

// The names of the options; each throws Error with the allowed values.
Packing parse_packing(std::string_view name);
OnBadRow parse_on_bad_row(std::string_view name);
StoppingStrategy parse_stopping_strategy(std::string_view name);

// [rows, seq_len], row-major. The label of a position is the token after it in the same document.
struct Batch {
  int64_t rows = 0;
  int64_t seq_len = 0;
  std::vector<int32_t> input, labels, positions;
  std::vector<int32_t> is_token;  // 1 = a token, 0 = padding
  int64_t num_valid_labels = 0;
};

// Counts since the start of the process, of batches handed out.
struct DataStats {
  int64_t num_documents = 0;  // packed
  int64_t num_empty = 0;      // rows without text, or with fewer than 2 tokens
  int64_t num_bad_rows = 0;   // skipped, on_bad_row = skip
  int64_t num_too_long = 0;   // dropped by first_fit and greedy
};

class DataLoader {
 public:
  // Opens the data. `tokenizer` may be null for ready token rows. Throws Error listing every wrong
  // option, or naming the data set or path that is not there.
  DataLoader(const DataLoaderOptions& options,
             std::shared_ptr<const tokenizer::Tokenizer> tokenizer);
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  // The next batch; false when a finite set has run out. `batch` gives its buffers back. Throws
  // what reading the data threw (a bad row: "file:line: reason"), after all batches before it were
  // handed out.
  bool next(Batch& batch);

  // Where the batches handed out so far end, as JSON. A loader of the same options continues from
  // there with the very rows that would have come next.
  std::string state() const;
  // The states of all data-parallel ranks of a run, in their order. With as many ranks as now the
  // rows go on exactly; else the rest of the epoch is split anew and every document still comes (a
  // log line says so). Throws Error where a state is of another data set, seed or packing.
  void restore(std::span<const std::string> rank_states);
  // The state of a run with one rank.
  void restore(const std::string& state) { restore(std::span(&state, 1)); }

  // Seconds that next() had to wait for data.
  double total_wait_seconds() const;
  DataStats stats() const;

  // "debug_text dataset from /usr/share/games/fortunes", for the log.
  std::string description() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// False for data sets of ready tokens.
bool needs_tokenizer(std::string_view dataset);

}  // namespace rhea::data
