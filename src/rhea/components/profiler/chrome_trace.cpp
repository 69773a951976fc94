// Events are written in the order of their kind; viewers sort by time.
#include "rhea/components/profiler/chrome_trace.h"

#include <zlib.h>

#include <nlohmann/json.hpp>

#include "rhea/base/error.h"

namespace rhea::profiler {
namespace {

class Writer {
 public:
  Writer(Time origin, int rank) : origin_(origin), rank_(rank) {}

  void event(const std::string& name, const char* category, Time begin, Time end,
             nlohmann::ordered_json args = nlohmann::ordered_json::object()) {
    events_.push_back({{"name", name},
                       {"cat", category},
                       {"ph", "X"},
                       {"ts", 1e6 * seconds_between(origin_, begin)},
                       {"dur", 1e6 * seconds_between(begin, end)},
                       {"pid", rank_},
                       {"tid", 0},
                       {"args", std::move(args)}});
  }
  void label(const char* what, const std::string& name) {
    events_.push_back(
        {{"name", what}, {"ph", "M"}, {"pid", rank_}, {"tid", 0}, {"args", {{"name", name}}}});
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
  for (size_t first = 0; first < graph.calls.size();) {
    size_t last = first;
    while (last + 1 < graph.calls.size() && graph.calls[last + 1].node > graph.calls[last].node)
      ++last;
    writer.event(graph.name, "graph", graph.calls[first].begin, graph.calls[last].end);
    first = last + 1;
  }
  for (const auto& call : graph.calls) {
    const auto& node = (*graph.nodes)[static_cast<size_t>(call.node)];
    const double seconds = std::max(seconds_between(call.begin, call.end), 1e-9);
    writer.event(node.op, "kernel", call.begin, call.end,
                 {{"fqn", node.fqn},
                  {"kernel", node.kernel},
                  {"types", node.types},
                  {"gflops_per_s", node.cost.flops / seconds * 1e-9},
                  {"gb_per_s", node.cost.bytes / seconds * 1e-9}});
  }
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
