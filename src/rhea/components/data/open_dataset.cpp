// Look-up in the table, and what becomes of a row.
#include "rhea/components/data/open_dataset.h"

#include <fmt/format.h>
#include <glob.h>

#include "rhea/base/error.h"
#include "rhea/base/text.h"
#include "rhea/components/data/data_loader.h"
#include "rhea/components/data/ordered_rows.h"
#include "rhea/components/data/packed_rows.h"

namespace rhea::data {
namespace {

std::string not_supported(std::string_view name) {
  return fmt::format("Dataset {} is not supported. Supported datasets are: [{}]", name,
                     joined(datasets().names()));
}

const Dataset& find_dataset(std::string_view name) {
  if (const Dataset* found = datasets().find(lower_case(name))) return *found;
  throw Error("{}", not_supported(name));
}

// Of a file, a folder or a glob.
bool any_file(const std::string& path) {
  if (std::filesystem::exists(path)) return true;
  glob_t found{};
  const bool some = ::glob(path.c_str(), 0, nullptr, &found) == 0 && found.gl_pathc > 0;
  ::globfree(&found);
  return some;
}

}  // namespace

void check_source(const SourceOptions& source, const std::string& path,
                  std::vector<config::Problem>& problems) {
  const Dataset* dataset = datasets().find(lower_case(source.dataset));
  const std::string files = source.dataset_path.value_or("");
  if (dataset == nullptr) {
    problems.push_back({path + ".dataset", "'" + source.dataset + "'",
                        not_supported(source.dataset), /*anywhere=*/true});
  } else if (files.empty()) {
    if (dataset->path == Dataset::Path::required)
      problems.push_back({path + ".dataset_path", "None",
                          fmt::format("dataset {} needs it: a file, a folder or a glob of local "
                                      "files",
                                      source.dataset)});
  } else if (dataset->path != Dataset::Path::ignored && !any_file(files)) {
    problems.push_back({path + ".dataset_path", files,
                        files.find_first_of("*?[") == std::string::npos
                            ? "there is no such file or folder"
                            : "no file matches"});
  }
}

bool needs_tokenizer(std::string_view dataset) {
  const Dataset* found = datasets().find(lower_case(dataset));
  return found == nullptr || !found->rows;
}

std::unique_ptr<DocumentSource> open_documents(const SourceOptions& source,
                                               const DocumentFormat& format) {
  const Dataset& dataset = find_dataset(source.dataset);
  if (!dataset.documents)
    throw Error("dataset {} holds ready rows of tokens, and text is needed", source.dataset);
  auto documents = dataset.documents(source, format);
  if (!documents) throw Error("dataset {} opened nothing", source.dataset);
  return documents;
}

std::unique_ptr<RowSource> open_rows(const SourceOptions& source, const DataLoaderOptions& options,
                                     std::shared_ptr<const tokenizer::Tokenizer> tokenizer) {
  if (const Dataset& dataset = find_dataset(source.dataset); dataset.rows) {
    auto rows = dataset.rows(source, options);
    if (!rows) throw Error("dataset {} opened nothing", source.dataset);
    return std::make_unique<OrderedRows>(std::move(rows), dataset.name, source.infinite, options);
  }
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
