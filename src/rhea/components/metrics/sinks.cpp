// The in-tree sinks. The console line is a contract: fields, order and widths are those that log
// readers of torchtitan expect.
#include "rhea/components/metrics/sinks.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/base/rethrow.h"
#include "rhea/base/text.h"
#include "rhea/components/metrics/jsonl.h"
#include "rhea/components/metrics/tensorboard.h"

namespace rhea::metrics {
namespace {

class ConsoleSink final : public MetricSink {
 public:
  explicit ConsoleSink(bool colors) : colors_(colors) {}

  void write(const Record& record) override {
    record.is_validation() ? write_validation(record) : write_step(record);
  }

 private:
  void write_step(const Record& r) const {
    const double mfu = r.at("mfu(%)");
    log::info("metrics", "{}  {}  {}  {}  {}  {}  {}",
              paint("31", fmt::format("step: {:2}", r.step)),
              paint("32", fmt::format("loss: {:8.5f}", r.at("loss_metrics/global_avg_loss"))),
              paint("38;2;180;60;0", fmt::format("grad_norm: {:7.4f}", r.at("grad_norm"))),
              memory(r.at("memory/max_active(GiB)"), r.at("memory/max_active(%)")),
              paint("34", tokens_per_second(r.at("throughput(tps)"))),
              paint("36", fmt::format("tflops: {:.2f}", r.at("tflops"))),
              paint("35", std::isnan(mfu) ? "mfu: N/A" : fmt::format("mfu: {:.2f}%", mfu)));
  }
  void write_validation(const Record& r) const {
    log::info("metrics", "{}  {}  {}  {}", paint("33", fmt::format("validate step: {:2}", r.step)),
              paint("32", fmt::format("loss: {:7.4f}", r.at("validation_metrics/loss"))),
              memory(r.at("validation_metrics/memory/max_active(GiB)"),
                     r.at("validation_metrics/memory/max_active(%)")),
              paint("34", tokens_per_second(r.at("validation_metrics/throughput(tps)"))));
  }

  std::string memory(double gib, double percent) const {
    return paint("38;2;54;234;195", fmt::format("memory: {:5.2f}GiB({:.2f}%)", gib, percent));
  }
  static std::string tokens_per_second(double tps) {
    return fmt::format("tps: {}", with_commas(std::llround(tps)));
  }
  // Text in a terminal colour, or as it is.
  std::string paint(const char* color, std::string text) const {
    return colors_ ? fmt::format("\033[{}m{}\033[39m", color, text) : text;
  }

  bool colors_;
};

class JsonlSink final : public MetricSink {
 public:
  explicit JsonlSink(const std::filesystem::path& dump_folder)
      : writer_(dump_folder / "metrics" / "rank_0.jsonl") {}
  void write(const Record& record) override {
    writer_.write(record.step, record.unix_time, record.metrics);
  }

 private:
  JsonlWriter writer_;
};

class TensorboardSink final : public MetricSink {
 public:
  explicit TensorboardSink(const std::filesystem::path& folder)
      : writer_(folder, static_cast<double>(std::time(nullptr))) {
    log::info("metrics", "TensorBoard logging enabled. Logs will be saved at {}", folder.string());
  }
  void write(const Record& record) override {
    for (const Metric& metric : record.metrics)
      writer_.scalar(metric.key, metric.value, record.step, record.unix_time);
    writer_.flush();
  }

 private:
  EventWriter writer_;
};

}  // namespace

double Record::at(std::string_view key) const {
  const auto found = std::ranges::find(metrics, key, &Metric::key);
  if (found == metrics.end()) throw Error("step {} has no metric '{}'", step, key);
  return found->value;
}

bool Record::is_validation() const {
  return !metrics.empty() && metrics.front().key.starts_with("validation_metrics/");
}

NamedTable<Sink>& sinks() {
  static NamedTable<Sink> table = [] {
    NamedTable<Sink> made("metric sink", [](const Sink& sink) -> std::string_view {
      return sink.open ? "" : "has no open function";
    });
    made.add(
        {"console",
         [](const SinkOptions& options) { return std::make_unique<ConsoleSink>(options.colors); },
         [](const MetricsConfig&) { return true; }},
        kInTree);
    made.add({"jsonl",
              [](const SinkOptions& options) {
                return std::make_unique<JsonlSink>(options.dump_folder);
              },
              [](const MetricsConfig& config) { return config.enable_jsonl; }},
             kInTree);
    made.add({"tensorboard",
              [](const SinkOptions& options) {
                return std::make_unique<TensorboardSink>(
                    tensorboard_folder(options.dump_folder, options.config.save_tb_folder,
                                       static_cast<int64_t>(std::time(nullptr)), std::nullopt));
              },
              [](const MetricsConfig& config) { return config.enable_tensorboard; }},
             kInTree);
    return made;
  }();
  return table;
}

std::vector<OpenSink> open_sinks(const SinkOptions& options) {
  const auto& named = options.config.sinks;
  for (const std::string& name : named) sinks().at(name);
  std::vector<OpenSink> open;
  sinks().for_each([&](const Sink& row) {
    if (!(row.wanted && row.wanted(options.config)) &&
        std::ranges::find(named, row.name) == named.end())
      return;
    try {
      open.push_back({row.name, row.open(options)});
    } catch (...) {
      rethrow_with("metric sink " + row.name);
    }
    if (!open.back().sink) throw Error("metric sink {} opened nothing", row.name);
  });
  return open;
}

}  // namespace rhea::metrics
