// The comparing itself: what two sides that differ are told.
#include "rhea/check/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "rhea/check/part.h"
#include "rhea/check/report.h"
#include "rhea/check/values.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"

namespace rhea::check {
namespace {

using ir::Graph;
using ir::Value;
using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Numbers, DifferencesAreOfTheLargestElement) {
  const Difference d = difference({1, 2.5, kNan}, {1, 2, kNan});
  EXPECT_EQ(d.max_abs, 0.5);
  EXPECT_EQ(d.max_rel, 0.25);
  EXPECT_EQ(difference({kNan}, {1}).max_rel, std::numeric_limits<double>::infinity());
  EXPECT_EQ(difference({0, -0.0}, {-0.0, 0}).max_abs, 0);
}

TEST(Numbers, UnitsInTheLastPlace) {
  UlpHistogram f32;
  f32.add({1, 1 + 0x1p-23, 1 + 0x1p-21, -1}, {1, 1, 1, 1}, DType::f32);
  EXPECT_EQ(f32.text(), "0: 25 %, 1: 25 %, 3-4: 25 %, more than 16: 25 %");
  UlpHistogram bf16;
  bf16.add({1 + 0x1p-7, -0.0}, {1, 0}, DType::bf16);
  EXPECT_EQ(bf16.text(), "0: 50 %, 1: 50 %");
}

// x * w + x over [4, 6], with w declared as two parts.
Side side_of(double factor, bool wrong_gradient) {
  Side side;
  Graph whole;
  const ir::Type type{DType::f32, {4, 6}};
  const Value x = ops::exponential(whole.input("h", type));
  const Value w = whole.input("w", type);
  Value y = ops::add(ops::multiply(x, w), x);
  if (factor != 1) y = ops::multiply(y, factor);
  if (wrong_gradient)
    y = ops::add(ops::multiply(y, 0.5), ops::multiply(ops::stop_gradient(y), 0.5));
  side.parameters = {{.fqn = "w",
                      .shape = {4, 6},
                      .parts = {{"w1", 0, 1, nn::Init::zeros()}, {"w2", 1, 4, nn::Init::zeros()}},
                      .share = {}}};
  const std::vector<Value> arguments = {x}, results = {y};
  side.graph =
      cut_part(whole, {.arguments = arguments, .results = results, .parameters = side.parameters});
  fill_inputs(side.graph, {.parameters = side.parameters, .constants = {}, .rope_specs = {}},
              side.inputs);
  return side;
}

Answer ask(double factor, bool wrong_gradient, bool timed = false) {
  ThreadPool pool(2);
  return compare({.stock = side_of(1, false),
                  .other = side_of(factor, wrong_gradient),
                  .dtype = DType::f32,
                  .timed = timed},
                 pool);
}

std::vector<std::string> faulty(const Answer& answer) {
  std::vector<std::string> names;
  for (const TensorAnswer& tensor : answer.tensors) {
    if (!tensor.fault.empty()) names.push_back(tensor.name);
  }
  return names;
}

TEST(Compare, EqualSidesAgreeInResultsAndGradientsOfArgumentsAndParts) {
  const Answer answer = ask(1, false, true);
  EXPECT_TRUE(answer.good());
  EXPECT_TRUE(answer.has_reference);
  std::vector<std::string> names;
  for (const TensorAnswer& tensor : answer.tensors) {
    names.push_back(tensor.name);
    EXPECT_EQ(tensor.difference.max_abs, 0) << tensor.name;
    EXPECT_LT(*tensor.other_error, 1e-6) << tensor.name;
  }
  EXPECT_THAT(names, testing::ElementsAre("d w1", "d w2", "dx0", "y0"));
  EXPECT_EQ(answer.ulps.text(), "0: 100 %");
  EXPECT_GT(answer.other_seconds, 0);
}

TEST(Compare, AboveItsBoundTheReferenceIsLeftOutAndTheReasonTold) {
  ThreadPool pool(1);
  const Answer answer = compare(
      {.stock = side_of(1, false), .other = side_of(1.001, false), .max_reference_flops = 10},
      pool);
  EXPECT_FALSE(answer.has_reference);
  EXPECT_FALSE(answer.tensors.at(0).other_error.has_value());
  EXPECT_THAT(answer.no_reference,
              HasSubstr("GFLOP, more than the 1e-08 of --max_reference_gflop"));
  EXPECT_TRUE(answer.too_many_flops);
  EXPECT_FALSE(answer.good()) << "stock stands for it";
}

// No option adds memory.
TEST(Report, OnlyABoundOfFlopsIsToldHowToRaise) {
  const auto summary = [](bool too_many_flops) {
    std::ostringstream out;
    Report report(out);
    report.subject("kernels for mine");
    const Answer answer{.no_reference = "it is too large", .too_many_flops = too_many_flops};
    report.answer("f32", {}, answer);
    report.end_subject();
    EXPECT_TRUE(report.finish());
    return out.str();
  };
  EXPECT_THAT(summary(true),
              HasSubstr("1 of 1 comparisons (--max_reference_gflop raises the bound): kernels"));
  EXPECT_THAT(summary(false), testing::AllOf(HasSubstr("1 of 1 comparisons: kernels for mine"),
                                             testing::Not(HasSubstr("raises"))));
}

TEST(Compare, AWrongForwardIsSeenEverywhere) {
  EXPECT_THAT(faulty(ask(1.001, false)), testing::ElementsAre("d w1", "d w2", "dx0", "y0"));
  EXPECT_TRUE(ask(1.000001, false).good());
}

TEST(Compare, AWrongBackwardIsSeenThoughTheForwardIsRight) {
  EXPECT_THAT(faulty(ask(1, true)), testing::ElementsAre("d w1", "d w2", "dx0"));
}

// v counts `factor`: nothing by the definition.
TEST(Compare, WhatIsLeftOfCancelledGradientsIsJudgedByTheLargest) {
  const auto side = [](double factor) {
    Graph whole;
    const ir::Type type{DType::f32, {4, 6}};
    const Value x = ops::exponential(whole.input("h", type));
    const Value v = ops::exponential(whole.input("v", type));
    const std::vector<Value> arguments = {x, v}, results = {ops::add(x, ops::multiply(v, factor))};
    Side made;
    made.graph = cut_part(whole, {.arguments = arguments, .results = results});
    fill_inputs(made.graph, {.parameters = {}, .constants = {}, .rope_specs = {}}, made.inputs);
    return made;
  };
  ThreadPool pool(1);
  EXPECT_TRUE(compare({.stock = side(0), .other = side(1e-9)}, pool).good());
  const Answer wrong = compare({.stock = side(0), .other = side(2e-6)}, pool);
  EXPECT_THAT(faulty(wrong), testing::ElementsAre("dx1"));
}

TEST(Compare, AnExactQuestionAllowsNoBit) {
  ThreadPool pool(1);
  const Answer answer = compare({.stock = side_of(1, false),
                                 .other = side_of(1.0000002, false),
                                 .dtype = DType::f32,
                                 .exact = true},
                                pool);
  EXPECT_FALSE(answer.good());
  EXPECT_THAT(answer.tensors.back().fault, HasSubstr("must be equal"));
}

// Items write where others write, so the bits depend on who comes last.
TEST(Compare, BitsThatDependOnTheRunAreSeen) {
  static const ir::OpDef row{
      .name = "check_test_counting",
      .infer = [](std::span<const ir::Type> in,
                  const ir::Attrs&) { return std::vector<ir::Type>{in[0]}; },
      .cpu = {{.name = "counting",
               .plan =
                   [](const ir::OpInstance&) {
                     ir::KernelPlan plan;
                     plan.run = [](const ir::KernelArgs& args) {
                       static float count = 0;
                       for (int i = 0; i < 24; ++i) args.out[0].as<float>()[i] = 0;
                       args.out[0].as<float>()[0] = ++count * 1e-30F;
                     };
                     return plan;
                   }}},
      .cost = ops::cost_per_element(1),
      .reference = [](const ir::ReferenceArgs&) {},
  };
  const auto side = [] {
    Side made;
    const Value x = made.graph.input("x0", {DType::f32, {24}});
    made.graph.output("y0", made.graph.add1(row, {x}));
    fill_inputs(made.graph, {.parameters = {}, .constants = {}, .rope_specs = {}}, made.inputs);
    return made;
  };
  ThreadPool pool(2);
  const Answer answer = compare({.stock = side(), .other = side()}, pool);
  EXPECT_FALSE(answer.good());
  EXPECT_THAT(answer.faults, testing::Contains("y0 has other bits in another run"));
}

TEST(Part, WholeNumbersAreComputedFromWhatTheyComeFrom) {
  Graph whole;
  const Value scores = ops::exponential(whole.input("scores", {DType::f32, {5, 8}}));
  const Value table = ops::exponential(whole.input("table", {DType::f32, {8, 3}}));
  const Value ids = ops::reshape(ops::top_k(scores, 1)[1], {5});
  const std::vector<Value> arguments = {table, ids}, results = {ops::embedding(table, ids)};
  const Graph part = cut_part(whole, {.arguments = arguments, .results = results});
  std::vector<std::string> inputs;
  for (const auto& input : part.inputs()) inputs.push_back(input.name);
  EXPECT_THAT(inputs, testing::ElementsAre("x0", "/exponential.0.0", "dy0"));
  EXPECT_NE(part.find_output("dx0"), nullptr);
}

}  // namespace
}  // namespace rhea::check
