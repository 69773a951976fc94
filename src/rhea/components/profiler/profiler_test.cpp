// Cycles, sums and traces on made-up times.
#include "rhea/components/profiler/profiler.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/profiler/chrome_trace.h"
#include "rhea/components/profiler/schedule.h"

namespace rhea::profiler {
namespace {

using exec::cpu::NodeReport;
using testing::ElementsAre;

// One character per step from step 1: idle, recorded, last of a cycle.
std::string kinds(const ProfilerConfig& config, int64_t steps) {
  std::string text;
  for (int64_t step = 1; step <= steps; ++step)
    text += ".rL"[static_cast<int>(kind_of_step(config, step))];
  return text;
}

TEST(Schedule, the_end_of_every_cycle_is_recorded) {
  ProfilerConfig config;
  EXPECT_EQ(kinds(config, 21), ".........L.........L.");
  config.profile_freq = 5;
  config.profiler_active = 2;
  EXPECT_EQ(kinds(config, 12), "...rL...rL..");
  config.profiler_skip_first = 2;
  EXPECT_EQ(kinds(config, 12), ".....rL...rL");
  config.profiler_repeat = 1;
  EXPECT_EQ(kinds(config, 14), ".....rL.......");
  config.profiler_warmup = 1;
  config.profiler_skip_first_wait = 1;  // the first cycle is 2 steps of waiting shorter
  config.profiler_repeat = 2;
  EXPECT_EQ(kinds(config, 14), "...rL...rL....");
  config.profile_freq = config.profiler_active = 1;
  config.profiler_warmup = 0;
  config.profiler_skip_first = config.profiler_repeat = std::nullopt;
  EXPECT_EQ(kinds(config, 3), "LLL");
}

Time at(double ms) {
  return Time{} +
         std::chrono::duration_cast<Time::duration>(std::chrono::duration<double, std::milli>(ms));
}

const std::vector<NodeReport> kNodes = {
    {.op = "dot", .fqn = "layers.0.w", .kernel = "k", .cost = {4e6, 1}, .type = {DType::bf16, {}}},
    {.op = "dot",
     .fqn = "layers.1.w",
     .kernel = "k",
     .cost = {4e6, 1},
     .type = {DType::bf16, {}},
     .direction = passes::Direction::input_gradient},
    {.op = "never", .kernel = "k", .cost = {1, 1}}};

// Two steps of 10 ms: fetching 1 ms, then a phase of 8 ms with another of 2 ms inside.
Recording recording() {
  Recording made;
  made.graphs.push_back({"microbatch", &kNodes, {}});
  for (const double start : {0.0, 100.0}) {
    made.steps.push_back({start == 0 ? 4 : 5, at(start), at(start + 10)});
    made.phases.push_back({"fetching_batch", at(start), at(start + 1)});
    made.graphs[0].log.calls.push_back({0, at(start + 1.5), at(start + 3.5)});
    made.phases.push_back({"inner", at(start + 4), at(start + 6)});
    made.graphs[0].log.calls.push_back({1, at(start + 6), at(start + 8)});
    made.phases.push_back({"outer", at(start + 1), at(start + 9)});
  }
  // The first call ends late: worker 1 takes the last item of worker 0.
  made.graphs[0].log.workers = {
      {{0, 0, 0, 7, false, at(1.5), at(3)}, {1, 0, 0, 8, false, at(6), at(8)}},
      {{0, 0, 8, 16, false, at(1.5), at(2.5)}, {0, 0, 7, 8, true, at(2.5), at(3.5)}}};
  return made;
}

std::vector<std::string> names(const std::vector<exec::cpu::TimeRow>& rows) {
  std::vector<std::string> sorted;
  for (const auto& row : rows) sorted.push_back(row.name);
  std::ranges::sort(sorted);
  return sorted;
}

TEST(Report, explains_the_step) {
  const Report report = make_report(recording(), {.flops_f32 = 1, .flops_bf16 = 4e9, .bytes = 1e9});
  EXPECT_NEAR(report.step, 10e-3, 1e-9);
  EXPECT_NEAR(report.kernels, 4e-3, 1e-9);
  EXPECT_NEAR(report.explained(), 0.5, 1e-6);  // kernels and fetching
  for (const auto* rows : {&report.directions, &report.ops, &report.modules, &report.layers}) {
    ASSERT_EQ(rows->size(), 2U);
    for (const auto& row : *rows) {
      EXPECT_NEAR(row.calls, 1, 1e-9);
      EXPECT_NEAR(row.limit / row.seconds, 0.5, 1e-6);
    }
  }
  EXPECT_THAT(names(report.directions), ElementsAre("forward", "input gradient"));
  EXPECT_THAT(names(report.ops), ElementsAre("dot (k), forward", "dot (k), input gradient"));
  EXPECT_THAT(names(report.modules),
              ElementsAre("layers.*.w, forward", "layers.*.w, input gradient"));
  EXPECT_THAT(names(report.layers), ElementsAre("layers.0", "layers.1"));
  EXPECT_THAT(names(report.fqns), ElementsAre("layers.0.w, forward", "layers.1.w, input gradient"));
  Recording nameless = recording();
  nameless.graphs[0].log.calls = {{2, at(1), at(2)}};
  EXPECT_THAT(names(make_report(nameless, {}).modules), ElementsAre("(microbatch), forward"));
  nameless.graphs[0].name = "update";  // which has no way back
  EXPECT_THAT(names(make_report(nameless, {}).modules), ElementsAre("(update)"));
  EXPECT_THAT(names(make_report(nameless, {}).ops), ElementsAre("never (k), update"));
  std::map<std::string, double> phases(report.phases.begin(), report.phases.end());
  EXPECT_NEAR(phases.at("fetching_batch"), 1e-3, 1e-9);
  EXPECT_NEAR(phases.at("inner"), 2e-3, 1e-9);
  EXPECT_NEAR(phases.at("outer"), 2e-3, 1e-9);  // 8 less 4 in kernels and 2 inside
  EXPECT_NEAR(phases.at("rest"), 1e-3, 1e-9);
  const auto json = parse_json(to_json(report));
  EXPECT_NEAR(json["ops"][0]["share_of_limit"].get<double>(), 0.5, 1e-6);
  EXPECT_THAT(to_text(report),
              testing::HasSubstr("steps 4 to 5: 10.000 ms a step, 40.0 % in kernels"));
}

TEST(Trace, nests_calls_in_runs_of_their_graph) {
  const auto json = parse_json(chrome_trace(recording(), 0));
  int graphs = 0, kernels = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] != "X") continue;
    if (event["cat"] == "graph") {
      ++graphs;
      EXPECT_NEAR(event["dur"].get<double>(), 6500, 1e-3);
    }
    if (event["cat"] == "kernel") {
      ++kernels;
      EXPECT_NEAR(event["args"]["gflops_per_s"].get<double>(), 2, 1e-6);
    }
  }
  EXPECT_EQ(graphs, 2);
  EXPECT_EQ(kernels, 4);
}

TEST(Trace, shows_what_each_worker_did) {
  const auto json = parse_json(chrome_trace(recording(), 0));
  std::vector<std::string> seen;  // track, name, microseconds
  for (const auto& event : json["traceEvents"]) {
    if (event.contains("cat") && event["cat"] == "worker")
      seen.push_back(fmt::format("{} {} {:.0f}", event["tid"].get<int>(),
                                 event["name"].get<std::string>(), event["dur"].get<double>()));
    if (event["name"] == "thread_name" && event["tid"] == 2) {
      EXPECT_EQ(event["args"]["name"], "worker 1");
    }
  }
  EXPECT_THAT(seen, ElementsAre("1 dot 1500", "1 dot 2000", "2 dot 1000", "2 dot (stolen) 1000"));
}

TEST(Trace, is_a_gzip_file) {
  const std::string text(100000, 'x');
  const auto path = std::filesystem::path(testing::TempDir()) / "profiler_trace.json.gz";
  write_file_atomic(path, gzip(text));
  EXPECT_LT(std::filesystem::file_size(path), 2000U);
  const gzFile file = gzopen(path.c_str(), "rb");
  std::string back(text.size() + 1, '\0');
  EXPECT_EQ(gzread(file, back.data(), static_cast<unsigned>(back.size())), 100000);
  gzclose(file);
  EXPECT_EQ(back.substr(0, text.size()), text);
}

}  // namespace
}  // namespace rhea::profiler
