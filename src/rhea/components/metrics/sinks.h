// Where the numbers of a run go: the table of metric sinks. console, jsonl and tensorboard are
// in-tree; a module adds its own, and `metrics.sinks` names it.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rhea/base/named_table.h"
#include "rhea/components/metrics/metric.h"
#include "rhea/config/sections/metrics.h"

namespace rhea::metrics {

// One place, opened for a run.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  // Called by the training thread, in the order of the steps; what it throws ends the run. What was
  // written must survive a kill of the process.
  virtual void write(const Record& record) = 0;
};

// What a sink is opened with.
struct SinkOptions {
  // The section `metrics`, which outlives the sink; a config derived from it has fields of sinks of
  // a user's file.
  const MetricsConfig& config;
  std::filesystem::path dump_folder;  // of the run: files go below it
  bool colors = false;                // of the console
};

// A row of the table.
struct Sink {
  std::string name;  // in `metrics.sinks`
  // Opens it; throws Error where that cannot be.
  std::function<std::unique_ptr<MetricSink>(const SinkOptions& options)> open;
  // Whether options of its own ask for it; empty: only `metrics.sinks` does.
  std::function<bool(const MetricsConfig& config)> wanted = {};
};
// console, jsonl, tensorboard and what modules add.
NamedTable<Sink>& sinks();

// A sink of a run.
struct OpenSink {
  std::string name;                  // in the table
  std::unique_ptr<MetricSink> sink;  // never null
};
// The sinks that the config asks for, opened, in the order of the table. Throws Error for a name
// that is not in the table.
std::vector<OpenSink> open_sinks(const SinkOptions& options);

}  // namespace rhea::metrics
