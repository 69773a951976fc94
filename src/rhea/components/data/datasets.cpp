// The table of data sets.
#include "rhea/components/data/datasets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rhea/base/error.h"
#include "rhea/base/text.h"
#include "rhea/components/data/debug_text.h"
#include "rhea/components/data/input_files.h"
#include "rhea/components/data/packed_rows.h"
#include "rhea/components/data/random_rows.h"
#include "rhea/components/data/text_documents.h"
#include "rhea/components/data/token_rows.h"
#include "rhea/config/validate.h"

namespace rhea::data {
namespace {

constexpr std::string_view kJsonExtensions[] = {".jsonl",   ".json",      ".jsonl.gz",
                                                ".json.gz", ".jsonl.zst", ".json.zst"};
constexpr std::string_view kTextExtensions[] = {".txt", ".txt.gz", ".txt.zst", ".md"};
constexpr std::string_view kTokenExtensions[] = {".safetensors"};
// Rhea ships no third-party text: where a user puts a copy of torchtitan's test set.
constexpr const char* kC4TestFolder = "tests/assets/c4_test";

std::string required_path(const SourceOptions& source, std::string_view name) {
  if (source.dataset_path) return *source.dataset_path;
  if (name == "c4_test") {
    if (std::filesystem::exists(kC4TestFolder)) return kC4TestFolder;
    throw Error(
        "dataset c4_test: {} is absent; Rhea ships no copy of that text: put one there, set "
        "dataloader.dataset_path, or use dataloader.dataset debug_text",
        kC4TestFolder);
  }
  if (name.starts_with("c4"))
    throw Error(
        "dataset {}: set dataloader.dataset_path to local files of allenai/c4 (.json.gz); nothing "
        "is fetched from a "
        "network",
        source.dataset);
  throw Error("dataset {}: dataloader.dataset_path must name a file, a folder or a glob",
              source.dataset);
}

}  // namespace

bool needs_tokenizer(std::string_view dataset) {
  const std::string name = lower_case(dataset);
  return name != "tokens" && name != "random";
}

std::unique_ptr<DocumentSource> open_documents(const SourceOptions& source,
                                               const DocumentFormat& format) {
  const std::string name = lower_case(source.dataset);
  if (name == "debug_text" || name == "debug_text_validation")
    return open_debug_text(source.dataset_path.value_or(kDebugTextFolder),
                           name == "debug_text" ? DebugTextPart::train : DebugTextPart::validation);
  RecordFormat record;
  record.text_field = format.text_field;
  if (name == "c4" || name == "c4_validation" || name == "c4_test") {
    record.text_field = "text";
  } else if (name == "text") {
    record.kind = format.whole_files ? RecordKind::text_file : RecordKind::text_block;
  } else if (name != "jsonl") {
    throw Error("Dataset {} is not supported. Supported datasets are: [{}]", source.dataset,
                fmt::join(config::supported_datasets(), ", "));
  }
  const bool json = record.kind == RecordKind::json_line;
  const auto files =
      expand_path(required_path(source, name),
                  json ? std::span<const std::string_view>(kJsonExtensions) : kTextExtensions);
  for (const auto& file : files)
    if (file.extension() == ".parquet")
      throw Error(
          "dataset {}: {} is a parquet file; give the same data as JSON lines (.jsonl, .json.gz, "
          ".jsonl.zst)",
          source.dataset, file.string());
  return open_text_documents(files, record, format.index_folder);
}

std::unique_ptr<RowSource> open_rows(const SourceOptions& source, const DataLoaderOptions& options,
                                     std::shared_ptr<const tokenizer::Tokenizer> tokenizer) {
  if (lower_case(source.dataset) == "tokens")
    return std::make_unique<TokenRows>(
        expand_path(required_path(source, "tokens"), kTokenExtensions), source.infinite, options);
  if (lower_case(source.dataset) == "random") return std::make_unique<RandomRows>(options);
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
      DocumentStream(open_documents(source, {options.text_field, options.text_whole_files,
                                             options.index_folder}),
                     stream),
      std::move(tokenizer), options);
}

}  // namespace rhea::data
