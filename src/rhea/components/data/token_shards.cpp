#include "rhea/components/data/token_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "rhea/base/error.h"
#include "rhea/base/machine_memory.h"
#include "rhea/base/output_folder.h"
#include "rhea/components/safetensors/writer.h"
#include "rhea/components/tokenizer/readers.h"

namespace rhea::data {
namespace {

constexpr int64_t kTokensPerFile = int64_t{1} << 24;

// Rows of one file in memory; its header needs their number before their bytes.
class Shard {
 public:
  Shard(const std::filesystem::path& folder, int64_t seq_len)
      : folder_(folder), seq_len_(seq_len) {}

  void add(const Batch& batch) {
    for (size_t i = 0; i < kNames.size(); ++i) {
      const std::vector<int32_t>& rows =
          *std::array{&batch.input, &batch.labels, &batch.positions}[i];
      columns_[i].insert(columns_[i].end(), rows.begin(), rows.end());
    }
    num_rows_ += batch.rows;
  }

  int64_t num_rows() const { return num_rows_; }
  int num_files() const { return num_files_; }

  void write() {
    if (num_rows_ == 0) return;
    std::vector<safetensors::TensorSpec> specs;
    for (const char* name : kNames)
      specs.push_back({name, safetensors::ElementType::I32, {num_rows_, seq_len_}});
    safetensors::Writer writer(folder_ / fmt::format("tokens-{:05}.safetensors", num_files_),
                               specs);
    for (size_t i = 0; i < kNames.size(); ++i) {
      writer.write(i, std::as_bytes(std::span(columns_[i])));
      columns_[i].clear();
    }
    writer.finish();
    ++num_files_;
    num_rows_ = 0;
  }

 private:
  static constexpr std::array<const char*, 3> kNames = {"input", "labels", "positions"};
  std::filesystem::path folder_;
  int64_t seq_len_;
  std::array<std::vector<int32_t>, 3> columns_;
  int64_t num_rows_ = 0;
  int num_files_ = 0;
};

// Rows that wait in the loader's queue besides those of the file.
constexpr double kRowsAhead = 4;

void check_memory(int64_t rows_per_file, int64_t seq_len) {
  const double row_bytes = 3.0 * sizeof(int32_t) * static_cast<double>(seq_len);
  require_memory(
      (static_cast<double>(rows_per_file) + kRowsAhead) * row_bytes,
      fmt::format("tokenizer shard: a file of {} row(s) of {} tokens, which is put together in "
                  "memory,",
                  rows_per_file, seq_len),
      rows_per_file > 1 ? "lower --rows_per_file" : "lower --seq_len");
}

[[noreturn]] void no_row(const DataLoader& loader, const DataLoaderOptions& data) {
  const DataStats stats = loader.stats();
  std::string reason;
  if (stats.num_documents == 0)
    reason = fmt::format("it has no document of 2 tokens or more ({} empty, {} bad rows skipped)",
                         stats.num_empty, stats.num_bad_rows);
  else if (stats.num_too_long == stats.num_documents)
    reason = fmt::format(
        "each of its {} documents is longer than a row of {} tokens, and only --packing concat "
        "cuts documents; raise --seq_len or use it",
        stats.num_documents, data.seq_len);
  else
    reason = fmt::format("its {} documents do not fill one row of {} tokens; lower --seq_len",
                         stats.num_documents, data.seq_len);
  throw Error("tokenizer shard: nothing to write of {}: {}", loader.description(), reason);
}

}  // namespace

void write_token_shards(const TokenShardOptions& options, std::ostream& report) {
  if (options.output.empty()) throw Error("tokenizer shard: --output must name a folder");
  check_new_folder(options.output);
  if (!needs_tokenizer(options.data.dataset))
    throw Error("tokenizer shard: the data set {} holds tokens already", options.data.dataset);
  DataLoaderOptions data = options.data;
  data.infinite = false;
  data.rows = 1;
  const int64_t rows_per_file = options.rows_per_file > 0
                                    ? options.rows_per_file
                                    : std::max<int64_t>(1, kTokensPerFile / data.seq_len);
  check_memory(rows_per_file, data.seq_len);
  DataLoader loader(data, tokenizer::load_tokenizer({options.tokenizer}, options.kind));
  int64_t num_rows = 0;
  int64_t num_labels = 0;
  int num_files = 0;
  // Half of a data set must not look like one.
  const auto fill = [&](const std::filesystem::path& temporary) {
    Shard shard(temporary, data.seq_len);
    for (Batch batch; loader.next(batch); ++num_rows) {
      shard.add(batch);
      num_labels += batch.num_valid_labels;
      if (shard.num_rows() == rows_per_file) shard.write();
    }
    if (num_rows == 0) no_row(loader, data);
    shard.write();
    num_files = shard.num_files();
  };
  make_folder(folder_path(options.output), fill, Existing::refuse);
  const DataStats stats = loader.stats();
  report << fmt::format("{} documents of {}\n", stats.num_documents, loader.description())
         << fmt::format("{} empty, {} bad rows, {} too long\n", stats.num_empty, stats.num_bad_rows,
                        stats.num_too_long)
         << fmt::format("{} rows of {} tokens, {} labels, in {} files\nwritten to {}\n", num_rows,
                        data.seq_len, num_labels, num_files, options.output.string());
}

}  // namespace rhea::data
