// What a data set is opened with.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "rhea/components/tokenizer/tokenizer.h"
#include "rhea/config/sections/data.h"

namespace rhea::data {

// How documents become rows of seq_len tokens; DataloaderConfig::packing names them.
enum class Packing {
  concat,     // documents one after the other, cut every seq_len tokens
  first_fit,  // whole documents, each into the first of num_packing_bins open rows that has room
  greedy,     // whole documents in order; one that does not fit starts a new row
};
// A malformed row: an Error that names file and line, or it is skipped and counted.
enum class OnBadRow { stop, skip };
// A mixture ends with the first source that has run out, or with the last.
enum class StoppingStrategy { on_first_exhausted, all_exhausted };

// One data set of a mixture.
struct SourceOptions {
  std::string dataset = "debug_text";       // key of the table of data sets
  std::optional<std::string> dataset_path;  // file, folder or glob in place of the data set's own
  bool infinite = true;                     // starts over when exhausted
  double weight = 1;                        // share of the rows, relative to the other sources
  // The section of the run, for data sets that read fields of their own; null outside of a run.
  const DataloaderConfig* config = nullptr;
};

// The section `dataloader` of a run, and what the trainer adds.
struct DataLoaderOptions {
  std::string dataset = "debug_text";       // key of the table of data sets
  std::optional<std::string> dataset_path;  // file, folder or glob in place of the data set's own
  bool infinite = true;                     // starts over when exhausted
  int num_workers = 0;                 // threads that tokenise; more than 1: documents side by side
  std::optional<int> prefetch_factor;  // batches prepared ahead, default 2
  uint64_t seed = 42;                  // order of epochs and of mixtures
  bool shuffle = false;                // also shuffle epoch 0
  Packing packing = Packing::concat;   // how documents become rows
  int num_packing_bins = 8;            // first_fit: open rows
  std::string text_field = "text";     // of a JSON line, column of a table
  // Data set `text`: a document is a file, not a block up to a blank line.
  bool text_whole_files = false;
  OnBadRow on_bad_row = OnBadRow::stop;  // what a malformed row does
  // Not empty: a mixture, and dataset, dataset_path, infinite are not used.
  std::vector<SourceOptions> sources;
  StoppingStrategy stopping_strategy = StoppingStrategy::on_first_exhausted;  // of a mixture

  // From the trainer.
  const DataloaderConfig* config = nullptr;  // must outlive the loader
  // What text that spells a special token becomes.
  tokenizer::SpecialTokensInText special_tokens_in_text = tokenizer::SpecialTokensInText::control;
  int64_t rows = 8;                    // per batch and data-parallel rank
  int64_t seq_len = 2048;              // tokens of a row
  int dp_rank = 0;                     // data-parallel rank of this process, from 0
  int dp_size = 1;                     // data-parallel ranks
  int64_t vocab_size = 0;              // > 0: ids of ready rows outside [0, vocab_size) are refused
  std::filesystem::path index_folder;  // where line indices of big files are kept; empty: in memory
  // A finite set ends with a full batch whose extra rows have no labels (validation).
  bool pad_last_batch = false;
};

}  // namespace rhea::data
