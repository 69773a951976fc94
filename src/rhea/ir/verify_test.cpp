// The rules that every graph obeys between passes.
#include "rhea/ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "rhea/base/error.h"
#include "rhea/ir/graph.h"

namespace rhea::ir {
namespace {

using testing::HasSubstr;

const OpDef kJoin{
    .name = "join",
    .infer =
        [](std::span<const Type> in, const Attrs&) {
          if (in.size() != 2 || in[0] != in[1]) throw Error("needs two operands of one type");
          return std::vector<Type>{in[0]};
        },
};

std::string problem(const Graph& graph) {
  try {
    verify(graph);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// x and w of one type; returns join(x, w).
Value two_inputs(Graph& graph, Value& x, Value& w) {
  x = graph.input("x", {DType::f32, {4}});
  w = graph.input("w", {DType::f32, {4}});
  return graph.add1(kJoin, {x, w});
}

TEST(Verify, AcceptsUpdatesInPlace) {
  Graph graph;
  Value x, w;
  const Value y = two_inputs(graph, x, w);
  graph.output("loss", graph.add1(kJoin, {y, w}));
  graph.output("w.new", graph.add1(kJoin, {w, y}), "w");  // others read w, and can run before
  graph.output("x.same", x, "x");
  EXPECT_EQ(problem(graph), "");
}

TEST(Verify, RefusesAnOverwrittenInputThatIsNeededLater) {
  Graph graph;
  Value x, w;
  const Value y = two_inputs(graph, x, w);
  graph.output("w.new", y, "w");
  graph.output("late", graph.add1(kJoin, {y, w}));
  EXPECT_THAT(problem(graph), HasSubstr("output 'w.new' overwrites the input 'w'"));
}

TEST(Verify, RefusesDonationsThatWaitForEachOther) {
  Graph graph;
  Value x, w;
  const Value y = two_inputs(graph, x, w);
  const Value a = graph.add1(kJoin, {y, w}), b = graph.add1(kJoin, {y, x});
  const Value c = graph.add1(kJoin, {a, x}), d = graph.add1(kJoin, {b, w});
  graph.output("x.new", a, "x");  // c reads x after a, and so must run before a
  graph.output("w.new", b, "w");
  graph.output("c", c);
  graph.output("d", d);
  EXPECT_THAT(problem(graph), HasSubstr("overwrites the input"));
}

TEST(Verify, RefusesAnOutputThatIsADonatedInput) {
  Graph graph;
  Value x, w;
  const Value y = two_inputs(graph, x, w);
  graph.output("w.new", y, "w");
  graph.output("w.old", w);
  EXPECT_THAT(problem(graph), HasSubstr("'w.old' is the input 'w'"));
}

TEST(Verify, RefusesBadDonations) {
  const auto with = [](const std::function<void(Graph&, Value, Value, Value)>& change) {
    Graph graph;
    Value x, w;
    const Value y = two_inputs(graph, x, w);
    change(graph, x, w, y);
    return problem(graph);
  };
  EXPECT_THAT(with([](Graph& g, Value, Value, Value y) { g.output("y", y, "nobody"); }),
              HasSubstr("donates 'nobody', which is no input"));
  EXPECT_THAT(with([](Graph& g, Value, Value, Value y) {
                g.output("a", y, "x");
                g.output("b", y, "x");
              }),
              HasSubstr("donated to two outputs"));
  EXPECT_THAT(with([](Graph& g, Value, Value, Value) {
                g.output("a", g.constant(1, {DType::f32, {5}}), "x");
              }),
              HasSubstr("is f32[5], but the input 'x' that it donates is f32[4]"));
  EXPECT_THAT(with([](Graph& g, Value x, Value, Value) { g.output("a", x, "w"); }),
              HasSubstr("is another input than 'w'"));
  EXPECT_THAT(with([](Graph& g, Value, Value, Value y) {
                g.output("a", y);
                g.output("a", y);
              }),
              HasSubstr("two outputs have the name 'a'"));
}

TEST(Verify, RefusesNodesThatWereChangedByHand) {
  const auto changed = [](const std::function<void(Node&)>& change) {
    Graph graph;
    Value x, w;
    two_inputs(graph, x, w);
    change(const_cast<Node&>(graph.nodes()[2]));
    return problem(graph);
  };
  EXPECT_THAT(changed([](Node& n) { n.outputs[0].shape = {5}; }),
              HasSubstr("'join' gives f32[4] by inference"));
  EXPECT_THAT(changed([](Node& n) { n.inputs[0].node = 2; }), HasSubstr("does not come before"));
  EXPECT_THAT(changed([](Node& n) { n.inputs[0].output = 1; }), HasSubstr("reads result 1 of %0"));
  EXPECT_THAT(changed([](Node& n) { n.attrs.set("depth", int64_t{1}); }),
              HasSubstr("has no attribute 'depth'"));
  EXPECT_THAT(changed([](Node& n) { n.inputs.pop_back(); }), HasSubstr("do not fit 'join'"));
}

TEST(Verify, NamesNodeModuleAndTypes) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4}});
  const Scope layer(graph, "layers.0");
  const Value y = graph.add1(kJoin, {x, x});
  const_cast<Node&>(graph.node(y.id)).outputs[0].shape = {5};
  EXPECT_THAT(problem(graph), testing::AllOf(HasSubstr("'join' gives f32[4] by inference"),
                                             HasSubstr("%1 = join(%0, %0) : f32[5]"),
                                             HasSubstr("layers.0"), HasSubstr("verify_test.cpp:")));
}

}  // namespace
}  // namespace rhea::ir
