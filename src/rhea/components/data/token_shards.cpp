#include "rhea/components/data/token_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "rhea/base/error.h"
#include "rhea/components/safetensors/writer.h"

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

void check_output(const std::filesystem::path& folder) {
  if (folder.empty()) throw Error("tokenizer shard: --output must name a folder");
  if (!std::filesystem::exists(folder)) return;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors")
      throw Error(
          "tokenizer shard: {} is there already, and the data set would hold it too; name "
          "an empty folder",
          entry.path().string());
}

}  // namespace

void write_token_shards(const TokenShardOptions& options, std::ostream& report) {
  check_output(options.output);
  if (!needs_tokenizer(options.data.dataset))
    throw Error("tokenizer shard: the data set {} holds tokens already", options.data.dataset);
  DataLoaderOptions data = options.data;
  data.infinite = false;
  data.rows = 1;
  DataLoader loader(data, tokenizer::load_tokenizer(options.tokenizer));
  std::filesystem::create_directories(options.output);
  const int64_t rows_per_file = options.rows_per_file > 0
                                    ? options.rows_per_file
                                    : std::max<int64_t>(1, kTokensPerFile / data.seq_len);
  Shard shard(options.output, data.seq_len);
  int64_t num_rows = 0;
  int64_t num_labels = 0;
  for (Batch batch; loader.next(batch); ++num_rows) {
    shard.add(batch);
    num_labels += batch.num_valid_labels;
    if (shard.num_rows() == rows_per_file) shard.write();
  }
  shard.write();
  if (num_rows == 0)
    throw Error("tokenizer shard: {} does not fill one row of {} tokens", loader.description(),
                data.seq_len);
  const DataStats stats = loader.stats();
  report << fmt::format("{} documents of {}\n", stats.num_documents, loader.description())
         << fmt::format("{} empty, {} bad rows, {} too long\n", stats.num_empty, stats.num_bad_rows,
                        stats.num_too_long)
         << fmt::format("{} rows of {} tokens, {} labels, in {} files\nwritten to {}\n", num_rows,
                        data.seq_len, num_labels, shard.num_files(), options.output.string());
}

}  // namespace rhea::data
