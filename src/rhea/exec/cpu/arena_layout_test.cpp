// Graphs that take turns on one arena: who needs which bytes when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rhea/base/aligned.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/exec/cpu/test_rows.h"

namespace rhea::exec::cpu {
namespace {

using ir::Value;
using test::kAdd;
using test::kMultiply;

constexpr int64_t kBytes = 16 * 16 * 4;
const ir::Type kType{DType::f32, {16, 16}};

// The graphs of a small training step: prepare makes "w" of the parameter, step reads w and makes
// the gradient "g", update reads g, changes the parameter and makes the next "w".
struct Round {
  ir::Graph prepare, step, update;
  bool prepare_is_optional = true;

  Round() {
    const Value p = prepare.input("p", kType);
    prepare.output("w", prepare.add1(kMultiply, {p, p}));
    const Value x = step.input("x", kType), w = step.input("w", kType);
    Value y = step.add1(kMultiply, {x, w});
    for (int i = 0; i < 2; ++i) y = step.add1(kMultiply, {y, x});
    step.output("g", step.add1(kMultiply, {y, y}));
    const Value old = update.input("p", kType), g = update.input("g", kType);
    const Value sum = update.add1(kAdd, {old, g});
    update.output("new.p", sum, "p");
    update.output("w", update.add1(kMultiply, {sum, sum}));
  }

  std::vector<TurnGraph> turns(bool share = true) const {
    CompileOptions options;
    if (!share) options.disable_passes = {"share_arena"};
    return {{&prepare, options, prepare_is_optional}, {&step, options}, {&update, options}};
  }
};

struct Floats {
  explicit Floats(float value) : data(16 * 16, value) {}
  AlignedVector<float> data;
};

// The parameter after three rounds, of which the first prepares.
float train(const Round& round, bool share, int64_t* arena = nullptr) {
  ThreadPool pool(2);
  const auto made = compile_turns(round.turns(share), pool, make_arena());
  if (arena != nullptr) *arena = made[0]->memory().arena;
  Floats p(0.5F), x(0.5F);
  made[0]->bind_input("p", p.data.data());
  made[1]->bind_input("x", x.data.data());
  made[2]->bind_input("p", p.data.data());
  made[0]->run();
  for (int i = 0; i < 3; ++i) {
    made[1]->run();
    made[2]->run();
  }
  EXPECT_THAT(p.data, testing::Each(p.data[0]));
  return p.data[0];
}

float expected_parameter() {
  float p = 0.5F, w = p * p;
  for (int i = 0; i < 3; ++i) {
    const float y = w * 0.125F;
    p += y * y;
    w = p * p;
  }
  return p;
}

TEST(ArenaLayout, TensorsBetweenGraphsHaveTheirBytesWhileTheyAreNeeded) {
  const Round round;
  int64_t shared = 0, apart = 0;
  EXPECT_EQ(train(round, true, &shared), expected_parameter());
  EXPECT_EQ(train(round, false, &apart), expected_parameter());
  // Two values at a time at most: w and y, y and the next y, y and g, g alone, w alone.
  EXPECT_EQ(shared, 2 * kBytes);
  // w, g, and the two values of the step.
  EXPECT_EQ(apart, 4 * kBytes);
}

TEST(ArenaLayout, WhatAGraphThatMayBeLeftOutMakesIsKept) {
  Round round;
  round.update.outputs().pop_back();  // w is made by prepare alone, and not in every round
  ThreadPool pool(1);
  const auto made = compile_turns(round.turns(), pool, make_arena());
  Floats p(0.5F), x(0.5F);
  made[0]->bind_input("p", p.data.data());
  made[1]->bind_input("x", x.data.data());
  made[2]->bind_input("p", p.data.data());
  made[0]->run();
  for (int i = 0; i < 3; ++i) {
    made[1]->run();
    made[2]->run();
  }
  EXPECT_EQ(p.data[0], 0.5F + 3 * 0.03125F * 0.03125F);
  EXPECT_EQ(made[0]->memory().arena, 3 * kBytes);
}

TEST(ArenaLayout, AGraphThatRunsTwiceFindsItsInputsAgain) {
  Round round;
  auto turns = round.turns();
  turns[1].repeats = true;
  ThreadPool pool(1);
  const auto made = compile_turns(turns, pool, make_arena());
  Floats p(0.5F), x(0.5F);
  made[0]->bind_input("p", p.data.data());
  made[1]->bind_input("x", x.data.data());
  made[2]->bind_input("p", p.data.data());
  made[0]->run();
  for (int i = 0; i < 3; ++i) made[1]->run();
  made[2]->run();
  EXPECT_EQ(p.data[0], 0.5F + 0.03125F * 0.03125F);
}

TEST(ArenaLayout, ThePlanIsWhatIsReserved) {
  const Round round;
  const auto plans = plan_turns(round.turns(), 2).graphs;
  ThreadPool pool(2);
  const auto made = compile_turns(round.turns(), pool, make_arena());
  for (size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(plans[i].memory.arena, made[i]->memory().arena);
    EXPECT_EQ(plans[i].memory.live, made[i]->memory().live);
  }
}

TEST(ArenaLayout, TheCallerBindsTheRest) {
  const Round round;
  ThreadPool pool(1);
  const auto made = compile_turns(round.turns(), pool, make_arena());
  EXPECT_EQ(made[1]->planned_input("x"), nullptr);
  EXPECT_NE(made[1]->planned_input("w"), nullptr);
  EXPECT_TRUE(made[1]->plans_output("g"));
  EXPECT_FALSE(made[2]->plans_output("new.p"));
}

}  // namespace
}  // namespace rhea::exec::cpu
