// The table of data sets: name, where its files are, how they are read.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rhea/components/data/document_source.h"
#include "rhea/components/data/row_source.h"

namespace rhea::data {

// What stays the same for every source of a loader.
struct DocumentFormat {
  std::string text_field = "text";
  bool whole_files = false;  // data set `text`: one document per file
  std::filesystem::path index_folder;
};

// Throws Error: `Dataset X is not supported. Supported datasets are: [...]`; a path that is needed
// or absent.
std::unique_ptr<DocumentSource> open_documents(const SourceOptions& source,
                                               const DocumentFormat& format);

// Rows of one source: documents that are packed, or ready rows.
std::unique_ptr<RowSource> open_rows(const SourceOptions& source, const DataLoaderOptions& options,
                                     std::shared_ptr<const tokenizer::Tokenizer> tokenizer);

}  // namespace rhea::data
