// Printing, parsing and verifying graphs, with rows of the test's own (the op table lies above).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "rhea/base/error.h"
#include "rhea/ir/graph.h"
#include "rhea/ir/parse.h"
#include "rhea/ir/print.h"
#include "rhea/ir/verify.h"

namespace rhea::ir {
namespace {

using testing::HasSubstr;

std::vector<Type> infer_same(std::span<const Type> in, const Attrs&) {
  if (in.size() != 2 || in[0] != in[1]) throw Error("needs two operands of one type");
  return {in[0]};
}

const OpDef kTextJoin{.name = "join", .infer = infer_same};
const OpDef kTwin{
    .name = "twin",
    .attrs = {{"count", AttrKind::i64, Attr{int64_t{3}}},
              {"ratio", AttrKind::f64, Attr{0.5}},
              {"note", AttrKind::str, Attr{std::string()}},
              {"dims", AttrKind::list, Attr{std::vector<int64_t>{}}},
              {"to", AttrKind::dtype, Attr{DType::f32}}},
    .infer =
        [](std::span<const Type> in, const Attrs& attrs) {
          if (in.size() != 1) throw Error("takes one operand");
          return std::vector<Type>{in[0], {attrs.dtype("to"), {}}};
        },
};

const OpDef* find(std::string_view name) {
  for (const OpDef* op : {&kTextJoin, &kTwin}) {
    if (op->name == name) return op;
  }
  return nullptr;
}

// Two inputs, a constant, a node with two results, scopes, awkward names.
Graph sample_graph() {
  Graph graph;
  const Value x = graph.input("x", {DType::bf16, {4, 8}});
  const Value w = graph.input("w \"quoted\"\n\\", {DType::f32, {64, 16}, Layout::panels_nk});
  const Scope outer(graph, "layers.0");
  const Scope inner(graph, "odd name");
  const Value c = graph.constant(0.1, {DType::bf16, {4, 8}});
  const Value y = graph.add1(kTextJoin, {x, c});
  const auto twins = graph.add(kTwin, std::vector<Value>{w},
                               {{"count", int64_t{-7}},
                                {"ratio", 1e300},
                                {"note", std::string("a, b} # \x01")},
                                {"dims", std::vector<int64_t>{0, 2, -1}},
                                {"to", DType::i64}});
  const Value last = graph.add1(kTextJoin, {y, y});
  graph.output("y", last, "x");
  graph.output("side", twins[1]);
  return graph;
}

TEST(Text, PrintsOneLinePerNode) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 3}});
  graph.set_context(graph.intern_scope("head"), graph.intern_location("rhea/nn/head.cpp:31"));
  const Value two = graph.constant(2, {DType::f32, {2, 3}});
  graph.output("y", graph.add1(kTextJoin, {x, two}), "x");
  EXPECT_EQ(to_text(graph),
            "%0 = input() {dtype=f32, layout=0, name=\"x\", shape=[2,3]} : f32[2,3]  # - -\n"
            "%1 = constant() {dtype=f32, shape=[2,3], value=2.0} : f32[2,3]"
            "  # head rhea/nn/head.cpp:31\n"
            "%2 = join(%0, %1) : f32[2,3]  # head rhea/nn/head.cpp:31\n"
            "output \"y\" = %2 donates \"x\"\n");
}

TEST(Text, ParsesBackToTheSameGraph) {
  const Graph graph = sample_graph();
  const std::string text = to_text(graph);
  const Graph again = parse(text, find);
  EXPECT_EQ(to_text(again), text);
  ASSERT_EQ(again.nodes().size(), graph.nodes().size());
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& a = graph.nodes()[i];
    const Node& b = again.nodes()[i];
    EXPECT_EQ(a.op, b.op);
    EXPECT_EQ(a.attrs, b.attrs);
    EXPECT_EQ(a.inputs, b.inputs);
    EXPECT_EQ(a.outputs, b.outputs);
    EXPECT_EQ(graph.scope_name(a), again.scope_name(b));
    EXPECT_EQ(graph.location_name(a), again.location_name(b));
  }
  ASSERT_EQ(again.inputs().size(), 2u);
  EXPECT_EQ(again.inputs()[1].name, "w \"quoted\"\n\\");
  EXPECT_EQ(again.find_output("y")->donates, "x");
  verify(again);
}

TEST(Text, NumbersKeepTheirBits) {
  for (const double value :
       {0.0, -0.0, 1e-320, 0.1, 1e22, 123456789012345678.0, std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity()}) {
    Graph graph;
    graph.output("c", graph.constant(value, {DType::f64, {}}));
    const Graph again = parse(to_text(graph), find);
    const double read = again.nodes()[0].attrs.f64("value");
    EXPECT_EQ(read, value);
    EXPECT_EQ(std::signbit(read), std::signbit(value));
  }
  Graph graph;
  graph.output("c", graph.constant(std::nan(""), {DType::f32, {}}));
  EXPECT_TRUE(std::isnan(parse(to_text(graph), find).nodes()[0].attrs.f64("value")));
}

struct BadText {
  const char* text;
  const char* message;
};
const std::string kInputLine =
    "%0 = input() {dtype=f32, layout=0, name=\"x\", shape=[2]} : f32[2]  # - -\n";

class BadTexts : public testing::TestWithParam<BadText> {};

TEST_P(BadTexts, AreRefusedWithTheirPlace) {
  const std::string text = kInputLine + GetParam().text;
  try {
    parse(text, find);
    ADD_FAILURE() << "accepted: " << text;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
    EXPECT_THAT(error.what(), HasSubstr("line "));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Text, BadTexts,
    testing::Values(
        BadText{"%1 = joim(%0, %0) : f32[2]", "line 2, column 6: unknown op 'joim'"},
        BadText{"%1 = join(%0, %4) : f32[2]", "line 2, column 15: %4 is not defined above"},
        BadText{"%1 = join(%1, %0) : f32[2]", "%1 is not defined above"},
        BadText{"%1 = join(%0, %0.0) : f32[2]", "%0 has 1 result"},
        BadText{"%0 = join(%0, %0) : f32[2]", "%0 is defined twice"},
        BadText{"%1 = join(%0, %0) : f32[3]", "result 0 is f32[2] by inference, but f32[3]"},
        BadText{"%1 = join(%0, %0) : f32[2], f32[2]", "result 1 is absent by inference"},
        BadText{"%1 = join(%0) : f32[2]", "needs two operands of one type"},
        BadText{"%1, %2 = join(%0, %0) : f32[2]", "results of a node are named"},
        BadText{"%1.0, %1.1 = join(%0, %0) : f32[2]", "'join' has 1 results, 2 are named"},
        BadText{"%1 = join(%0, %0) {depth=3} : f32[2]", "unknown attribute 'depth'"},
        BadText{"%1.0, %1.1 = twin(%0) {count=1, count=2} : f32[2], f32[]", "given twice"},
        BadText{"%1.0, %1.1 = twin(%0) {count=1.5} : f32[2], f32[]", "must be an integer"},
        BadText{"%1.0, %1.1 = twin(%0) {to=f31} : f32[2], f32[]", "'f31' is no element type"},
        BadText{"%1.0, %1.1 = twin(%0) {count=99999999999999999999} : f32[2]",
                "does not fit 64 bits"},
        BadText{"%1.0, %1.1 = twin(%0) {note=\"ab", "does not end on its line"},
        BadText{"%1.0, %1.1 = twin(%0) {note=\"\\q\"}", "unknown escape"},
        BadText{"%1.0, %1.1 = twin(%0) {note=\"\\x1", "two hexadecimal digits"},
        BadText{
            "%1 = constant() {dtype=f32, shape=[1099511627776,1099511627776], value=1.0} : f32[]",
            "too many elements"},
        BadText{"%1 = constant() {dtype=f32, shape=[9999999999999], value=1.0} : f32[]",
                "beyond the largest dim"},
        BadText{"%1 = constant() {dtype=f32, shape=[-2], value=1.0} : f32[]", "out of range"},
        BadText{"%1 = input() {dtype=f32, layout=7, name=\"y\", shape=[2]} : f32[2]",
                "must repeat its type"},
        BadText{"%1 = input() {dtype=f32, layout=0, name=\"x\", shape=[2]} : f32[2]",
                "exists already"},
        BadText{"%1 = input() : f32[2]", "needs the attribute name"},
        BadText{"%99999999999999999999 = join(%0, %0) : f32[2]", "does not fit 64 bits"},
        BadText{"output \"y\" = %0 junk", "expected the end of the line"},
        BadText{"output y = %0", "double quotes"},
        BadText{"output \"y\" = %0\noutput \"y\" = %0", "given twice"},
        BadText{"hello", "expected 'output'"}, BadText{"%", "expected an integer"}));

TEST(Text, RandomDamageGivesErrorsOnly) {
  const std::string text = to_text(sample_graph());
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = text;
    for (int k = 0; k < 1 + round % 4 && !damaged.empty(); ++k) {
      const size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, random() % 20);
          break;
        case 2:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 30));
          break;
        default:
          damaged.resize(at + 1);
      }
    }
    try {
      verify(parse(damaged, find));
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace rhea::ir
