// The table of data sets.
#include "rhea/components/data/datasets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "rhea/base/error.h"
#include "rhea/components/data/debug_text.h"
#include "rhea/components/data/packed_rows.h"

namespace rhea::data {
namespace {

std::string lower_case(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace

std::vector<std::string> dataset_names() { return {"debug_text", "debug_text_validation"}; }

std::unique_ptr<DocumentSource> open_documents(const SourceOptions& source, const DocumentFormat&) {
  const std::string name = lower_case(source.dataset);
  if (name == "debug_text" || name == "debug_text_validation")
    return open_debug_text(source.dataset_path.value_or(kDebugTextFolder),
                           name == "debug_text" ? DebugTextPart::train : DebugTextPart::validation);
  throw Error("Dataset {} is not supported. Supported datasets are: [{}]", source.dataset,
              fmt::join(dataset_names(), ", "));
}

std::unique_ptr<RowSource> open_rows(const SourceOptions& source, const DataLoaderOptions& options,
                                     std::shared_ptr<const tokenizer::Tokenizer> tokenizer) {
  if (!tokenizer)
    throw Error(
        "dataset {} holds text, and there is no tokenizer to read it with (tokenizer.path, "
        "hf_assets_path)",
        source.dataset);
  DocumentStream::Options stream;
  stream.name = source.dataset;
  stream.infinite = source.infinite;
  stream.shuffle = options.shuffle;
  stream.seed = options.seed;
  stream.on_bad_row = options.on_bad_row;
  stream.dp_rank = options.dp_rank;
  stream.dp_size = options.dp_size;
  return std::make_unique<PackedRows>(
      DocumentStream(open_documents(source, {options.text_field, options.index_folder}), stream),
      std::move(tokenizer), options);
}

}  // namespace rhea::data
