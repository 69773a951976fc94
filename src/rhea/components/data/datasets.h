// The table of data sets: name, where its files are, how they are read.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/named_table.h"
#include "rhea/components/data/data_loader.h"
#include "rhea/components/data/document_source.h"
#include "rhea/components/data/numbered_rows.h"
#include "rhea/config/report.h"

namespace rhea::data {

class RowSource;

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

// `path` names the section ("dataloader", "dataloader.sources.0") of a source whose data set is
// unknown, or whose files are not there.
void check_source(const SourceOptions& source, const std::string& path,
                  std::vector<config::Problem>& problems);

// Throws Error: `Dataset X is not supported. Supported datasets are: [...]`; a path that is needed
// or absent; a data set of ready rows.
std::unique_ptr<DocumentSource> open_documents(const SourceOptions& source,
                                               const DocumentFormat& format);

// Rows of one source: documents that are packed, or ready rows.
std::unique_ptr<RowSource> open_rows(const SourceOptions& source, const DataLoaderOptions& options,
                                     std::shared_ptr<const tokenizer::Tokenizer> tokenizer);

}  // namespace rhea::data
