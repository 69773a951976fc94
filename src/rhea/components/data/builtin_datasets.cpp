#include "rhea/components/data/builtin_datasets.h"

#include "rhea/base/error.h"
#include "rhea/components/data/debug_text.h"
#include "rhea/components/data/input_files.h"
#include "rhea/components/data/random_rows.h"
#include "rhea/components/data/text_documents.h"
#include "rhea/components/data/token_rows.h"

namespace rhea::data {
namespace {

using Documents = std::unique_ptr<DocumentSource>;

constexpr std::string_view kJsonExtensions[] = {".jsonl",   ".json",      ".jsonl.gz",
                                                ".json.gz", ".jsonl.zst", ".json.zst"};
constexpr std::string_view kTextExtensions[] = {".txt", ".txt.gz", ".txt.zst", ".md"};
constexpr std::string_view kTokenExtensions[] = {".safetensors"};
// Rhea ships no third-party text: where a user puts a copy of torchtitan's test set.
constexpr const char* kC4TestFolder = "tests/assets/c4_test";

std::string required_path(const SourceOptions& source) {
  if (source.dataset_path) return *source.dataset_path;
  throw Error("dataset {}: dataloader.dataset_path must name a file, a folder or a glob",
              source.dataset);
}

std::string c4_path(const SourceOptions& source) {
  if (source.dataset_path) return *source.dataset_path;
  throw Error(
      "dataset {}: set dataloader.dataset_path to local files of allenai/c4 (.json.gz); nothing is "
      "fetched from a network",
      source.dataset);
}

std::string c4_test_path(const SourceOptions& source) {
  if (source.dataset_path) return *source.dataset_path;
  if (std::filesystem::exists(kC4TestFolder)) return kC4TestFolder;
  throw Error(
      "dataset c4_test: {} is absent; Rhea ships no copy of that text: put one there, set "
      "dataloader.dataset_path, or use dataloader.dataset debug_text",
      kC4TestFolder);
}

Documents open_files(const SourceOptions& source, const std::string& path,
                     const RecordFormat& record, const DocumentFormat& format) {
  const bool json = record.kind == RecordKind::json_line;
  const auto files = expand_path(
      path, json ? std::span<const std::string_view>(kJsonExtensions) : kTextExtensions);
  for (const auto& file : files)
    if (file.extension() == ".parquet")
      throw Error(
          "dataset {}: {} is a parquet file; give the same data as JSON lines (.jsonl, .json.gz, "
          ".jsonl.zst)",
          source.dataset, file.string());
  return open_text_documents(files, record, format.index_folder);
}

// Local files of allenai/c4, whose text field has one name whatever the run says.
Dataset c4(const char* name, std::string (*path)(const SourceOptions&), Dataset::Path needs_path) {
  return {.name = name,
          .documents =
              [path](const SourceOptions& source, const DocumentFormat& format) {
                RecordFormat record;
                record.text_field = "text";
                return open_files(source, path(source), record, format);
              },
          .path = needs_path};
}

Documents open_json_lines(const SourceOptions& source, const DocumentFormat& format) {
  RecordFormat record;
  record.text_field = format.text_field;
  return open_files(source, required_path(source), record, format);
}

Documents open_text(const SourceOptions& source, const DocumentFormat& format) {
  RecordFormat record;
  record.kind = format.whole_files ? RecordKind::text_file : RecordKind::text_block;
  return open_files(source, required_path(source), record, format);
}

Dataset debug_text(const char* name, DebugTextPart part) {
  return {.name = name, .documents = [part](const SourceOptions& source, const DocumentFormat&) {
            return open_debug_text(source.dataset_path.value_or(kDebugTextFolder), part);
          }};
}

}  // namespace

void add_builtin_datasets(NamedTable<Dataset>& table) {
  using Path = Dataset::Path;
  const auto add = [&](Dataset dataset) { table.add(std::move(dataset), kInTree); };
  add(debug_text("debug_text", DebugTextPart::train));
  add(debug_text("debug_text_validation", DebugTextPart::validation));
  add(c4("c4", c4_path, Path::required));
  add(c4("c4_test", c4_test_path, Path::optional));
  add(c4("c4_validation", c4_path, Path::required));
  add({.name = "tokens",
       .rows =
           [](const SourceOptions& source, const DataLoaderOptions& options) {
             return std::make_unique<TokenRows>(
                 expand_path(required_path(source), kTokenExtensions), options.seq_len);
           },
       .path = Path::required});
  add({.name = "jsonl", .documents = open_json_lines, .path = Path::required});
  add({.name = "text", .documents = open_text, .path = Path::required});
  add({.name = "random",
       .rows =
           [](const SourceOptions&, const DataLoaderOptions& options) {
             return std::make_unique<RandomRows>(options.seed, options.vocab_size);
           },
       .path = Path::ignored});
}

}  // namespace rhea::data
