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
  std::string text_field = "text";
  bool whole_files = false;  // data set `text`: one document per file
  std::filesystem::path index_folder;
};

struct Dataset {
  std::string name;  // in lower case, as names are compared
  // What it holds, exactly one of the two: documents of text, or ready rows of tokens.
  std::function<std::unique_ptr<DocumentSource>(const SourceOptions& source,
                                                const DocumentFormat& format)>
      documents = {};
  std::function<std::unique_ptr<NumberedRows>(const SourceOptions& source,
                                              const DataLoaderOptions& options)>
      rows = {};
  // Whether dataset_path must name files; a given one must exist unless it is `ignored`.
  enum class Path { optional, required, ignored } path = Path::optional;
};
NamedTable<Dataset>& datasets();

}  // namespace rhea::data
