// The table of data sets: name, where its files are, how they are read.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "rhea/base/named_table.h"
#include "rhea/components/data/document_source.h"
#include "rhea/components/data/numbered_rows.h"
#include "rhea/components/data/options.h"

namespace rhea::data {

// What stays the same for every source of a loader.
struct DocumentFormat {
  std::string text_field = "text";     // of a JSON line, column of a table
  bool whole_files = false;            // data set `text`: one document per file
  std::filesystem::path index_folder;  // where line indices of big files are kept; empty: in memory
};

// A row of the table: how the data behind a name are opened.
struct Dataset {
  std::string name;  // in lower case, as names are compared
  // Opens documents of text. A data set has this or `rows`, not both.
  std::function<std::unique_ptr<DocumentSource>(const SourceOptions& source,
                                                const DocumentFormat& format)>
      documents = {};
  // Opens ready rows of tokens.
  std::function<std::unique_ptr<NumberedRows>(const SourceOptions& source,
                                              const DataLoaderOptions& options)>
      rows = {};
  // Whether dataset_path must name files; a given one must exist unless it is `ignored`.
  enum class Path { optional, required, ignored };
  Path path = Path::optional;  // what dataset_path must be
};
// debug_text, c4, jsonl, text, tokens, random, ... and what modules add.
NamedTable<Dataset>& datasets();

}  // namespace rhea::data
