// The list of passes, what runs around each, and the order for donated buffers.
#include "rhea/passes/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "rhea/base/error.h"
#include "rhea/ir/parse.h"
#include "rhea/ir/print.h"
#include "rhea/ops/ops.h"
#include "rhea/passes/donation_order.h"
#include "rhea/passes/fuse.h"
#include "rhea/passes/simplify.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Value;

Graph sample() {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4, 64}});
  g.output("y", ops::multiply(ops::add(ops::tanh(x), x), 2));
  return g;
}

TEST(Pipeline, RunsAndSkips) {
  Pipeline pipeline({.disable_passes = {"fuse"}, .verify = true});
  Graph g = sample();
  std::vector<std::string> ran;
  for (const char* pass : {"simplify", "fuse"}) {
    pipeline.run(pass, g, [&](const Graph& graph) {
      ran.emplace_back(pass);
      return simplify(graph);
    });
  }
  EXPECT_THAT(ran, testing::ElementsAre("simplify"));
  EXPECT_FALSE(pipeline.runs("fuse"));
}

TEST(Pipeline, DumpsTextThatParsesBack) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "rhea_pipeline_test";
  std::filesystem::remove_all(folder);
  Pipeline pipeline({.dump_graphs = folder.string(), .name = "step", .verify = true});
  Graph g = sample();
  pipeline.run("simplify", g, simplify);
  pipeline.run("fuse", g, fuse);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, testing::UnorderedElementsAre(testing::MatchesRegex("step.0._simplify.txt"),
                                                   testing::MatchesRegex("step.1._fuse.txt")));
  for (const auto& name : names) {
    std::ifstream file(folder / name);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_EQ(ir::to_text(ir::parse(text.str(), ops::find_op)), text.str());
  }
  std::filesystem::remove_all(folder);
}

TEST(Pipeline, NamesThePassThatBreaksAGraph) {
  Pipeline pipeline({.name = "step", .verify = true});
  Graph g = sample();
  const auto breaks = [](const Graph& from) {
    Graph broken = from;
    const_cast<ir::Node&>(broken.nodes()[1]).outputs[0].shape = {5};
    return broken;
  };
  EXPECT_THAT(
      [&] { pipeline.run("simplify", g, breaks); },
      testing::ThrowsMessage<Error>(testing::StartsWith("after pass simplify of graph step: ")));
}

TEST(Pipeline, UnknownAndFixedPassesAreRefused) {
  const std::vector<std::string> unknown = {"fuze"}, fixed = {"decompose"}, good = {"fuse"};
  check_pass_names(good);
  EXPECT_THAT([&] { check_pass_names(unknown); },
              testing::ThrowsMessage<Error>(
                  testing::StartsWith("there is no pass 'fuze': those that can be disabled are")));
  EXPECT_THAT([&] { check_pass_names(fixed); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("cannot be disabled")));
}

TEST(DonationOrder, MovesReadersAndKeepsTheRest) {
  Graph g;
  const Value a = g.input("a", {DType::f32, {4}});
  const Value b = g.input("b", {DType::f32, {4}});
  g.output("a", ops::add(a, b), "a");
  g.output("read", ops::tanh(a));
  const Graph ordered = order_for_donation(g);
  ASSERT_EQ(ordered.nodes().size(), 4U);
  EXPECT_EQ(ordered.nodes()[2].op, &ops::kTanh);
  EXPECT_EQ(ordered.nodes()[3].op, &ops::kAdd);
  const Graph again = order_for_donation(ordered);
  EXPECT_EQ(ir::to_text(again), ir::to_text(ordered));
}

TEST(DonationOrder, CirclesAreLeftToTheExecutor) {
  Graph g;
  const Value a = g.input("a", {DType::f32, {4}});
  const Value b = g.input("b", {DType::f32, {4}});
  g.output("a", ops::tanh(b), "a");  // each reads what the other overwrites
  g.output("b", ops::tanh(a), "b");
  EXPECT_EQ(ir::to_text(order_for_donation(g)), ir::to_text(g));
}

}  // namespace
}  // namespace rhea::passes
