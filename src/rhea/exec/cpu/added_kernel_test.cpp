// Kernels from outside in a compiled graph: tried first, refused with a reason, never fused away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rhea/exec/cpu/fence.h"
#include "rhea/exec/cpu/test_run.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/table.h"

namespace rhea::exec::cpu {
namespace {

using ir::Graph;
using ir::Value;

// Negates f32 matrices of an even number of rows.
void add_negate_kernel() {
  static const bool added = [] {
    ops::add_cpu_kernel(
        "negate",
        ops::to_cpu_kernel({.name = "mine",
                            .accepts =
                                [](const ir::OpInstance& node) {
                                  const ir::Type& x = node.in[0];
                                  if (x.dtype != DType::f32 || x.rank() != 2)
                                    return std::string("not an f32 matrix");
                                  if (x.shape[0] % 2 == 0) return std::string();
                                  return fmt::format("needs an even number of rows, got {}",
                                                     x.shape[0]);
                                },
                            .items = [](const ir::OpInstance& node) { return node.in[0].shape[0]; },
                            .run =
                                [](const ir::KernelArgs& args, const ir::OpInstance& node) {
                                  const int64_t width = node.in[0].shape[1];
                                  const float* x = args.in[0].as<const float>();
                                  for (int64_t i = args.begin * width; i < args.end * width; ++i)
                                    args.out[0].as<float>()[i] = -x[i];
                                }}),
        "mine.cpp");
    return true;
  }();
  (void)added;
}

Graph negated_twice(int64_t rows) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {rows, 5}});
  graph.output("y", ops::multiply(ops::negate(ops::exponential(x)), 3));
  return graph;
}

std::vector<std::string> kernels(const Graph& graph, const CompileOptions& options = {}) {
  std::vector<std::string> names;
  for (const NodeReport& node : plan(graph, 1, options).nodes)
    names.push_back(node.op + " " + node.kernel);
  return names;
}

TEST(AddedKernel, RunsBeforeTheRowsOwnAndOutsideOfClusters) {
  add_negate_kernel();
  const Graph graph = negated_twice(4);
  EXPECT_THAT(kernels(graph), testing::Contains("negate mine"));
  EXPECT_THAT(kernels(graph, {.interpret = true}), testing::Contains("negate mine"));
  EXPECT_THAT(kernels(graph, {.added_kernels = false}),
              testing::Not(testing::Contains(testing::StartsWith("negate"))));
  EXPECT_EQ(test::run_graph(graph).outputs,
            test::run_graph(graph, {.added_kernels = false}).outputs);
}

TEST(AddedKernel, ARefusalHasItsReasonAndLeavesTheNodeToOthers) {
  add_negate_kernel();
  const Graph graph = negated_twice(3);
  EXPECT_THAT(kernels(graph), testing::Not(testing::Contains(testing::StartsWith("negate"))));
  const auto report = plan(graph, 1, {.interpret = true});
  EXPECT_EQ(report.nodes[1].op, "negate");
  EXPECT_THAT(report.nodes[1].note,
              testing::HasSubstr("mine refused: needs an even number of rows, got 3"));
}

TEST(AddedKernel, ChoiceAndRefusalAreSaidOnceForEachOpAndTypes) {
  add_negate_kernel();
  testing::internal::CaptureStdout();
  for (int i = 0; i < 3; ++i) {
    plan(negated_twice(7), 1, {.interpret = true});
    plan(negated_twice(8), 1);
  }
  const std::string log = testing::internal::GetCapturedStdout();
  const std::string refusal =
      "negate(f32[7,5] -> f32[7,5]): kernel mine of mine.cpp refused: needs an even number of "
      "rows, got 7\n";
  const std::string choice = "negate(f32[8,5] -> f32[8,5]): kernel mine of mine.cpp is used\n";
  for (const std::string& line : {refusal, choice}) {
    const size_t first = log.find(line);
    EXPECT_NE(first, std::string::npos) << log;
    EXPECT_EQ(log.find(line, first + 1), std::string::npos) << log;
  }
}

#if defined(RHEA_FENCES)
// One element too many, which is that of another value: only the sanitizer can tell (preset asan).
TEST(AddedKernelDeathTest, LeavingABufferIsReportedByTheSanitizer) {
  const ops::ScopedAdditions scoped;
  ops::add_cpu_kernel(
      "logistic",
      ops::to_cpu_kernel({.name = "too_far",
                          .run =
                              [](const ir::KernelArgs& args, const ir::OpInstance&) {
                                const float* x = args.in[0].as<const float>();
                                for (int64_t i = 0; i < 16; ++i) args.out[0].as<float>()[i] = x[i];
                              }}),
      "too_far.cpp");
  const auto run = [](int64_t width) {
    Graph graph;
    const Value x = graph.input("x", {DType::f32, {1, width}});
    const Value y = ops::logistic(ops::exponential(x));
    graph.output("y", ops::multiply(y, 3));
    test::run_graph(graph, {}, 1);
  };
  run(16);
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(run(15), "use-after-poison");
}
#endif

}  // namespace
}  // namespace rhea::exec::cpu
