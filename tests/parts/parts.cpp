// One of each thing that a user's file can register beside kernels and overrides; parts_test.cpp
// trains with all of them.
#include <cctype>
#include <cstdio>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"
#include "rhea/plugin/plugin.h"
#include "shared.h"

namespace {

namespace ops = rhea::ops;
using rhea::ir::Value;

// A data set of ready rows: row n counts down from start + n.
class Countdown final : public rhea::data::NumberedRows {
 public:
  explicit Countdown(int64_t start) : start_(start) {}
  std::optional<int64_t> num_rows() const override { return 50; }
  void read(int64_t number, const rhea::data::RowView& row) const override {
    for (size_t i = 0; i < row.input.size(); ++i)
      row.input[i] = static_cast<int32_t>((start_ + number - static_cast<int64_t>(i)) % 100);
    rhea::data::fill_from_input(row);
  }
  std::string description() const override { return "fifty countdowns"; }

 private:
  int64_t start_;
};

// A data set of text.
class Greetings final : public rhea::data::DocumentSource {
 public:
  std::optional<int64_t> num_documents() const override { return 20; }
  bool read(int64_t number, rhea::data::Document& document) override {
    document = {"hello number " + std::to_string(number), ""};
    return number < 20;
  }
  std::string description() const override { return "twenty greetings"; }
};

// A tokenizer: a token is a byte; 256 begins and ends a text.
class Bytes final : public rhea::tokenizer::Tokenizer {
 public:
  using Options = rhea::tokenizer::EncodeOptions;
  explicit Bytes(bool upper) : upper_(upper) {}
  std::vector<int32_t> encode(std::string_view text, const Options&) const override {
    std::vector<int32_t> ids = {kEdge};
    for (const unsigned char c : text) ids.push_back(upper_ ? std::toupper(c) : c);
    ids.push_back(kEdge);
    return ids;
  }
  std::string decode(const std::vector<int32_t>& ids, bool) const override {
    std::string text;
    for (const int32_t id : ids)
      if (id < kEdge) text += static_cast<char>(id);
    return text;
  }
  int64_t vocab_size() const override { return kEdge + 1; }
  int64_t num_tokens() const override { return kEdge + 1; }
  std::optional<int32_t> bos_id() const override { return kEdge; }
  std::optional<int32_t> eos_id() const override { return kEdge; }
  std::optional<int32_t> pad_id() const override { return kEdge; }
  std::string token_text(int32_t id) const override { return decode({id}, false); }
  std::optional<int32_t> token_id(std::string_view token) const override {
    if (token.size() != 1) return std::nullopt;
    return static_cast<unsigned char>(token[0]);
  }
  bool is_special(int32_t id) const override { return id == kEdge; }
  std::vector<int32_t> prefix_ids(const Options&) const override { return {kEdge}; }
  std::vector<int32_t> suffix_ids(const Options&) const override { return {kEdge}; }
  std::string description() const override { return "bytes"; }
  std::string chat_template() const override { return ""; }

 private:
  static constexpr int32_t kEdge = 256;
  bool upper_;
};

// A place for the numbers of a run: a line of a file per step.
class Csv final : public rhea::metrics::MetricSink {
 public:
  explicit Csv(const std::filesystem::path& file) : file_(std::fopen(file.c_str(), "a")) {
    if (file_ == nullptr) throw rhea::Error("{} cannot be opened", file.string());
  }
  ~Csv() override { std::fclose(file_); }
  void write(const rhea::metrics::Record& record) override {
    if (record.is_validation()) return;
    std::fprintf(file_, "%lld,%.9g\n", static_cast<long long>(record.step),
                 record.at("loss_metrics/global_avg_loss"));
    std::fflush(file_);
  }

 private:
  std::FILE* file_;
};

// An update rule: Lion, with a name for its decay that OptimizerKwargs does not have.
rhea::train_step::Optimizer lion() {
  rhea::train_step::Optimizer row;
  row.name = "Lion";
  row.defaults.lr = 1e-4;
  row.defaults.betas = {0.9, 0.99};
  row.defaults.more = {"lambda=0"};
  row.state = [](const rhea::OptimizerKwargs&) { return std::vector<std::string>{"momentum"}; };
  row.update = [](const rhea::train_step::UpdateInputs& in, const rhea::OptimizerKwargs& kwargs) {
    const double b1 = (*kwargs.betas)[0], b2 = (*kwargs.betas)[1];
    const double lambda = rhea::train_step::more_number(kwargs, "lambda");
    const Value p = in.weight(), g = in.gradient(), m = in.state_value(0);
    const Value direction = ops::sign(ops::multiply(m, b1) + ops::multiply(g, 1 - b1));
    return std::vector{p - in.spread(in.lr) * (direction + ops::multiply(p, lambda)),
                       ops::multiply(m, b2) + ops::multiply(g, 1 - b2)};
  };
  return row;
}

// A loss: logits of the head, and what is made of them.
Value trace_z_loss(const rhea::nn::LossInputs& in, const parts::ZLoss& config) {
  const Value logits_TV = in.logits();
  const Value z_T = ops::logsumexp(logits_TV);
  const Value squares = ops::multiply(ops::reduce_sum(z_T * z_T, {0}), config.z_weight);
  return ops::cross_entropy(logits_TV, in.labels_T, in.scale) + squares * in.scale;
}

}  // namespace

RHEA_PLUGIN(p) {
  using rhea::data::DataLoaderOptions;
  using rhea::data::DocumentFormat;
  using rhea::data::SourceOptions;
  p.dataset({.name = "countdown",
             .rows =
                 [](const SourceOptions& source, const DataLoaderOptions&) {
                   const auto* config = dynamic_cast<const parts::CountdownConfig*>(source.config);
                   return std::make_unique<Countdown>(config == nullptr ? 1000 : config->start);
                 },
             .path = rhea::data::Dataset::Path::ignored});
  p.dataset({.name = "greetings",
             .documents = [](const SourceOptions&,
                             const DocumentFormat&) { return std::make_unique<Greetings>(); },
             .path = rhea::data::Dataset::Path::ignored});
  p.tokenizer({.name = "bytes",
               .read = [](const rhea::tokenizer::ReadOptions& options, std::vector<std::string>&) {
                 const auto* config = dynamic_cast<const parts::BytesConfig*>(options.config);
                 return std::make_shared<Bytes>(config != nullptr && config->upper);
               }});
  p.metric_sink({.name = "csv", .open = [](const rhea::metrics::SinkOptions& options) {
                   const auto* config = dynamic_cast<const parts::CsvConfig*>(&options.config);
                   return std::make_unique<Csv>(
                       options.dump_folder / (config == nullptr ? "losses.csv" : config->csv_file));
                 }});
  p.optimizer(lion());
  p.lr_schedule(
      {.name = "halves", .shape = [](double progress, const rhea::LrSchedulerConfig& section) {
         const auto* config = dynamic_cast<const parts::HalvesConfig*>(&section);
         return progress < 0.5 ? 1.0 : config == nullptr ? 0.5 : config->rest;
       }});
  p.loss<parts::ZLoss>("ZLoss", trace_z_loss);
}
