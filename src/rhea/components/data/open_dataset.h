// From the options of a run to a data set of the table, opened.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rhea/components/data/datasets.h"
#include "rhea/config/report.h"

namespace rhea::data {

class RowSource;

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
