// `rhea tokenizer shard`: a data set as ready token files for the data set `tokens`.
#pragma once
#include <filesystem>
#include <iosfwd>
#include <string>

#include "rhea/components/data/data_loader.h"

namespace rhea::data {

struct TokenShardOptions {
  std::filesystem::path tokenizer;  // folder or file
  std::string kind = "auto";        // which reader, where the files are of several
  // What is read and how it is packed: exactly as training would. One pass over the data.
  DataLoaderOptions data;
  int64_t rows_per_file = 0;     // 0: about 16 million tokens
  std::filesystem::path output;  // folder that does not exist yet, or is empty
};

// Writes tokens-00000.safetensors, ... with input, labels and positions i32 [rows, seq_len], and a
// report. Documents that do not fill the last row are not written, as in a finite training run.
// The folder appears whole or not at all. Memory: one file. Throws Error naming option, path or
// data at fault, and ExitError with out_of_memory for rows that would not fit, before anything is
// read.
void write_token_shards(const TokenShardOptions& options, std::ostream& report);

}  // namespace rhea::data
