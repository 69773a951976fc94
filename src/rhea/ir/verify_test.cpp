#include "rhea/ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rhea/base/error.h"

namespace rhea::ir {
namespace {

const OpDef kTwin{
    .name = "twin",
    .attrs = {{"grow", AttrKind::i64, Attr{int64_t{0}}}},
    .infer = [](std::span<const Type> in, const Attrs& attrs) -> std::vector<Type> {
      Type out = in[0];
      out.shape[0] += attrs.i64("grow");
      return {out};
    },
};

// The error text; empty when the graph is right.
std::string problem(const Graph& graph) {
  try {
    verify(graph);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Verify, AcceptsWhatGraphMakes) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4, 8}});
  g.output("y", g.add1(kTwin, {g.add1(kTwin, {x})}, {{"grow", int64_t{2}}}));
  EXPECT_THAT(problem(g), testing::IsEmpty());
}

TEST(Verify, NamesNodeModuleAndTypes) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4, 8}});
  const Scope layer(g, "layers.0");
  const Value y = g.add1(kTwin, {x});
  const_cast<Node&>(g.node(y.id)).outputs[0].shape = {5, 8};
  EXPECT_THAT(
      problem(g),
      testing::AllOf(testing::HasSubstr("node 1 (twin)"),
                     testing::HasSubstr("result 0 is f32[5,8], its row infers f32[4,8]"),
                     testing::HasSubstr("in layers.0"), testing::HasSubstr("verify_test.cpp:")));
}

TEST(Verify, OperandsComeFirst) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4, 8}});
  const Value y = g.add1(kTwin, {x});
  const_cast<Node&>(g.node(y.id)).inputs[0] = {1, 0};
  EXPECT_THAT(problem(g), testing::HasSubstr("does not come before it"));
}

TEST(Verify, DonationsAreUniqueAndTyped) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4, 8}});
  const Value grown = g.add1(kTwin, {x}, {{"grow", int64_t{1}}});
  g.output("a", g.add1(kTwin, {x}), "x");
  EXPECT_THAT(problem(g), testing::IsEmpty());
  g.output("b", g.add1(kTwin, {x}), "x");
  EXPECT_THAT(problem(g), testing::HasSubstr("two outputs take the buffer of input 'x'"));
  g.outputs().pop_back();
  g.output("c", grown, "x");
  EXPECT_THAT(problem(g), testing::HasSubstr("is f32[5,8], but takes the buffer of input 'x'"));
  g.outputs().back().donates.assign(1, 'z');
  EXPECT_THAT(problem(g), testing::HasSubstr("which does not exist"));
}

TEST(Verify, RefusesReadsAfterDonation) {
  static const OpDef both{.name = "both", .infer = [](std::span<const Type> in, const Attrs&) {
                            return std::vector<Type>{in[0]};
                          }};
  Graph g;
  const Value x = g.input("x", {DType::f32, {4, 8}});
  const Value y = g.add1(kTwin, {x});
  g.output("y", y, "x");
  g.output("free", g.add1(kTwin, {x}));  // can run before y
  EXPECT_THAT(problem(g), testing::IsEmpty());
  g.output("z", g.add1(both, {y, x}));
  EXPECT_THAT(problem(g), testing::HasSubstr("reads input 'x' after output 'y' has taken"));
}

}  // namespace
}  // namespace rhea::ir
