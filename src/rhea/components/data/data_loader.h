// Batches of token rows for training and validation, read, tokenised and packed in a background
// thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/components/tokenizer/tokenizer.h"
#include "rhea/config/sections/data.h"

namespace rhea::data {

// How documents become rows of seq_len tokens (checked names: parse_packing).
enum class Packing {
  concat,     // documents one after the other, cut every seq_len tokens
  first_fit,  // whole documents, each into the first of num_packing_bins open rows that has room
  greedy,     // whole documents in order; one that does not fit starts a new row
};
enum class OnBadRow { stop, skip };
enum class StoppingStrategy { on_first_exhausted, all_exhausted };

// The names of the options; each throws Error with the allowed values.
Packing parse_packing(std::string_view name);
OnBadRow parse_on_bad_row(std::string_view name);
StoppingStrategy parse_stopping_strategy(std::string_view name);

// One data set of a mixture.
struct SourceOptions {
  std::string dataset = "debug_text";
  std::optional<std::string> dataset_path;
  bool infinite = true;
  double weight = 1;
  // The section of the run, for data sets that read fields of their own; null outside of a run.
  const DataloaderConfig* config = nullptr;
};

// The section `dataloader` of a run, and what the trainer adds.
struct DataLoaderOptions {
  std::string dataset = "debug_text";
  std::optional<std::string> dataset_path;  // file, folder or glob in place of the data set's own
  bool infinite = true;
  int num_workers = 0;                 // threads that tokenise; more than 1: documents side by side
  std::optional<int> prefetch_factor;  // batches prepared ahead, default 2
  uint64_t seed = 42;                  // order of epochs and of mixtures
  bool shuffle = false;                // also shuffle epoch 0
  Packing packing = Packing::concat;
  int num_packing_bins = 8;
  std::string text_field = "text";
  // Data set `text`: a document is a file, not a block up to a blank line.
  bool text_whole_files = false;
  OnBadRow on_bad_row = OnBadRow::stop;
  // Not empty: a mixture, and dataset, dataset_path, infinite are not used.
  std::vector<SourceOptions> sources;
  StoppingStrategy stopping_strategy = StoppingStrategy::on_first_exhausted;

  // From the trainer.
  const DataloaderConfig* config = nullptr;  // must outlive the loader
  tokenizer::SpecialTokensInText special_tokens_in_text = tokenizer::SpecialTokensInText::control;
  int64_t rows = 8;  // per batch and data-parallel rank
  int64_t seq_len = 2048;
  int dp_rank = 0;
  int dp_size = 1;
  int64_t vocab_size = 0;              // > 0: ids of ready rows outside [0, vocab_size) are refused
  std::filesystem::path index_folder;  // where line indices of big files are kept; empty: in memory
  // A finite set ends with a full batch whose extra rows have no labels (validation).
  bool pad_last_batch = false;
};

// Label of a position that has none.
inline constexpr int32_t kIgnoreLabel = -100;

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
