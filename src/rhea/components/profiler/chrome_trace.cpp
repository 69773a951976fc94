// Events are written in the order of their kind; viewers sort by time.
#include "rhea/components/profiler/chrome_trace.h"

#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/components/profiler/report.h"

namespace rhea::profiler {
namespace {

constexpr size_t kFirstWorker = 1;  // track 0 is the step

class Writer {
 public:
  Writer(Time origin, int rank) : origin_(origin), rank_(rank) {}

  // On the track of the step, or of a worker.
  void event(const std::string& name, const char* category, Time begin, Time end,
             nlohmann::ordered_json args = nlohmann::ordered_json::object(), size_t track = 0) {
    events_.push_back({{"name", name},
                       {"cat", category},
                       {"ph", "X"},
                       {"ts", 1e6 * seconds_between(origin_, begin)},
                       {"dur", 1e6 * seconds_between(begin, end)},
                       {"pid", rank_},
                       {"tid", track},
                       {"args", std::move(args)}});
  }
  void label(const char* what, const std::string& name, size_t track = 0) {
    events_.push_back(
        {{"name", what}, {"ph", "M"}, {"pid", rank_}, {"tid", track}, {"args", {{"name", name}}}});
  }
  std::string text() {
    const nlohmann::ordered_json whole = {{"displayTimeUnit", "ms"},
                                          {"traceEvents", std::move(events_)}};
    return whole.dump();
  }

 private:
  Time origin_;
  int rank_;
  nlohmann::ordered_json events_ = nlohmann::ordered_json::array();
};

// A run of a graph calls its nodes in order.
void write_graph(const Graph& graph, Writer& writer) {
  for (size_t first = 0; first < graph.log.calls.size();) {
    size_t last = first;
    while (last + 1 < graph.log.calls.size() &&
           graph.log.calls[last + 1].node > graph.log.calls[last].node)
      ++last;
    writer.event(graph.name, "graph", graph.log.calls[first].begin, graph.log.calls[last].end);
    first = last + 1;
  }
  for (const auto& call : graph.log.calls) {
    const auto& node = (*graph.nodes)[static_cast<size_t>(call.node)];
    const double seconds = std::max(seconds_between(call.begin, call.end), 1e-9);
    writer.event(node.op, "kernel", call.begin, call.end,
                 {{"fqn", node.fqn},
                  {"direction", part_of(graph, node)},
                  {"kernel", node.kernel},
                  {"types", node.types},
                  {"gflops_per_s", node.cost.flops / seconds * 1e-9},
                  {"gb_per_s", node.cost.bytes / seconds * 1e-9}});
  }
}

// What the threads of the pool did meanwhile: a call ends when the last of them is done.
void write_workers(const Graph& graph, Writer& writer) {
  for (size_t worker = 0; worker < graph.log.workers.size(); ++worker) {
    for (const auto& time : graph.log.workers[worker]) {
      const auto& call = graph.log.calls[static_cast<size_t>(time.call)];
      const auto& node = (*graph.nodes)[static_cast<size_t>(call.node)];
      writer.event(time.stolen ? node.op + " (stolen)" : node.op, "worker", time.begin, time.end,
                   {{"fqn", node.fqn},
                    {"direction", part_of(graph, node)},
                    {"phase", time.phase},
                    {"first_item", time.first_item},
                    {"end_item", time.end_item}},
                   kFirstWorker + worker);
    }
  }
}

size_t num_workers(const Recording& recording) {
  size_t count = 0;
  for (const Graph& graph : recording.graphs) count = std::max(count, graph.log.workers.size());
  return count;
}

}  // namespace

std::string chrome_trace(const Recording& recording, int rank) {
  Writer writer(recording.steps.front().begin, rank);
  writer.label("process_name", "rhea rank " + std::to_string(rank));
  writer.label("thread_name", "step");
  for (const auto& step : recording.steps)
    writer.event("step " + std::to_string(step.number), "step", step.begin, step.end);
  for (const Phase& phase : recording.phases)
    writer.event(phase.name, "phase", phase.begin, phase.end);
  for (const Graph& graph : recording.graphs) write_graph(graph, writer);
  for (size_t worker = 0; worker < num_workers(recording); ++worker)
    writer.label("thread_name", "worker " + std::to_string(worker), kFirstWorker + worker);
  for (const Graph& graph : recording.graphs) write_workers(graph, writer);
  return writer.text();
}

std::string gzip(const std::string& text) {
  z_stream stream = {};
  constexpr int kGzipWindow = 15 + 16;
  RHEA_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                          Z_DEFAULT_STRATEGY) == Z_OK,
             "zlib cannot start");
  std::string packed(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  RHEA_CHECK(status == Z_STREAM_END, "zlib stopped with code {}", status);
  return packed;
}

}  // namespace rhea::profiler
