// Compiled graphs against their evaluation in f64; threads, arenas, in-place writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "rhea/exec/cpu/arena.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/exec/cpu/profile.h"
#include "rhea/exec/cpu/test_rows.h"

namespace rhea::exec::cpu {
namespace {

using ir::Graph;
using ir::Type;
using ir::Value;
using test::kAdd;
using test::kInverse;
using test::kMultiply;
using test::kTriple;

// 64-byte aligned floats.
struct Floats {
  explicit Floats(size_t n, float value = 0)
      : size(n), data(static_cast<float*>(std::aligned_alloc(64, round_up(n * 4 + 64)))) {
    for (size_t i = 0; i < n; ++i) data[i] = value;
  }
  ~Floats() { std::free(data); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  static size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }
  std::vector<float> values() const { return {data, data + size}; }
  size_t size;
  float* data;
};

// Of a graph with input x.
void bind(CpuExecutable& exe, const Floats& x, const Floats& result, const char* name = "y") {
  exe.bind_input("x", x.data);
  exe.bind_output(name, result.data);
}

struct Fixture : testing::Test {
  ThreadPool pool{3};
  std::shared_ptr<Arena> arena = make_arena();
  Graph g;

  std::unique_ptr<CpuExecutable> make(const CompileOptions& options = {}) {
    return compile(g, pool, arena, options);
  }
};

using Executor = Fixture;

TEST_F(Executor, RunsKernelsDecompositionsAndReferences) {
  const Value x = g.input("x", {DType::f32, {4, 8}});
  const Value y = g.add1(kInverse, {g.add1(kTriple, {x})});
  g.output("y", y);
  const auto exe = make();
  Floats in(32, 2), out(32);
  bind(*exe, in, out);
  exe->run();
  EXPECT_THAT(out.values(), testing::Each(1.0F / 6));
  ASSERT_EQ(exe->nodes().size(), 3U);
  EXPECT_EQ(exe->nodes()[2].kernel, "reference");
  in.data[5] = 1;
  exe->run();
  EXPECT_EQ(out.data[5], 1.0F / 3);
}

TEST_F(Executor, NotesWhichKernelsRefused) {
  static const ir::OpDef picky{
      .name = "test_picky",
      .infer = test::same_as_first,
      .cpu = {{.name = "future", .isa = Isa::avx512_bf16, .plan = nullptr},
              {.name = "odd", .accepts = [](const ir::OpInstance&) { return "8 is even"; }},
              kAdd.cpu[0]}};
  const Value x = g.input("x", {DType::f32, {4, 8}});
  g.output("y", g.add1(picky, {x, x}));
  const auto report = plan(g, 2, {.isa = Isa::plain});
  ASSERT_EQ(report.nodes.size(), 1U);
  EXPECT_EQ(report.nodes[0].kernel, "rows");
  EXPECT_EQ(report.nodes[0].note,
            "future refused: needs avx512_bf16, have plain; odd refused: 8 is even");
  EXPECT_EQ(report.nodes[0].types, "f32[4,8], f32[4,8] -> f32[4,8]");
}

TEST_F(Executor, ChainsRunInPlaceUnlessInterpreted) {
  const Value x = g.input("x", {DType::f32, {64, 64}});
  Value y = g.add1(kAdd, {x, x});
  for (int i = 0; i < 10; ++i) y = g.add1(kAdd, {y, x});
  g.output("y", g.add1(kMultiply, {y, y}));
  EXPECT_EQ(make()->memory().arena, 64 * 64 * 4);
  EXPECT_EQ(make({.interpret = true})->memory().arena, 2 * 64 * 64 * 4);
  for (const bool interpret : {false, true}) {
    const auto exe = make({.interpret = interpret});
    Floats in(64 * 64, 1), out(64 * 64);
    bind(*exe, in, out);
    exe->run();
    EXPECT_THAT(out.values(), testing::Each(144.0F));
    EXPECT_THAT(in.values(), testing::Each(1.0F));
  }
}

TEST_F(Executor, WhatAnOutputIsMadeOfLiesInItsMemory) {
  const Value x = g.input("x", {DType::f32, {64, 64}});
  const Value y = g.add1(kAdd, {x, x});
  g.output("z", g.add1(kAdd, {y, x}));
  const auto exe = make();
  EXPECT_EQ(exe->memory().arena, 0);
  Floats in(64 * 64, 1), out(64 * 64);
  bind(*exe, in, out, "z");
  exe->run();
  EXPECT_THAT(out.values(), testing::Each(3.0F));
  EXPECT_THAT(in.values(), testing::Each(1.0F));
}

TEST_F(Executor, ArenaValuesThatShareACallShareNoBytes) {
  const Value x = g.input("x", {DType::f32, {64, 64}});
  Value y = g.add1(kAdd, {x, x});
  const Value first = y;
  for (int i = 0; i < 5; ++i) y = g.add1(kMultiply, {y, x});
  g.output("y", g.add1(kMultiply, {y, first}));
  const auto report = plan(g, 2);
  ASSERT_GE(report.values.size(), 3U);
  int64_t end = 0;
  for (const ArenaValue& a : report.values) {
    ASSERT_LE(a.first_call, a.last_call);
    ASSERT_LT(a.last_call, static_cast<int32_t>(report.nodes.size()));
    end = std::max(end, a.offset + a.bytes);
    for (const ArenaValue& b : report.values)
      if (&a < &b && a.first_call <= b.last_call && b.first_call <= a.last_call) {
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
      }
  }
  EXPECT_EQ(end, report.memory.arena);
}

TEST_F(Executor, OperandsReadAgainAreNotOverwritten) {
  const Value x = g.input("x", {DType::f32, {16, 16}});
  const Value a = g.add1(kAdd, {x, x});  // 2
  const Value b = g.add1(kAdd, {a, x});  // 3: a is read below
  const Value c = g.add1(kMultiply, {a, b});
  g.output("c", c);
  const auto exe = make();
  Floats in(256, 1), out(256);
  bind(*exe, in, out, "c");
  exe->run();
  EXPECT_THAT(out.values(), testing::Each(6.0F));
}

TEST_F(Executor, DonatedInputIsUpdatedInPlace) {
  const Value x = g.input("x", {DType::f32, {16, 16}});
  const Value acc = g.input("acc", {DType::f32, {16, 16}});
  g.output("acc", g.add1(kAdd, {acc, x}), "acc");
  const auto exe = make();
  EXPECT_EQ(exe->memory().arena, 0);
  EXPECT_EQ(exe->nodes().size(), 1U);
  Floats in(256, 1), total(256, 10);
  exe->bind_input("x", in.data);
  exe->bind_input("acc", total.data);
  exe->run();
  exe->run();
  EXPECT_THAT(total.values(), testing::Each(12.0F));
}

TEST_F(Executor, ReadersOfADonatedInputRunFirst) {
  const Value acc = g.input("acc", {DType::f32, {16, 16}});
  g.output("acc", g.add1(kAdd, {acc, acc}), "acc");
  g.output("square", g.add1(kMultiply, {acc, acc}));
  const auto exe = make();
  EXPECT_EQ(exe->nodes().size(), 2U);  // no copy
  Floats total(256, 3), square(256);
  exe->bind_input("acc", total.data);
  exe->bind_output("square", square.data);
  exe->run();
  EXPECT_THAT(total.values(), testing::Each(6.0F));
  EXPECT_THAT(square.values(), testing::Each(9.0F));
}

TEST_F(Executor, OneValueForSeveralOutputs) {
  const Value x = g.input("x", {DType::f32, {4, 16}});
  const Value y = g.add1(kAdd, {x, x});
  g.output("y", y);
  g.output("again", y);
  g.output("three", g.constant(3, {DType::f32, {5}}));
  const auto exe = make();
  Floats in(64, 1), first(64), second(64), three(5);
  exe->bind_input("x", in.data);
  exe->bind_output("y", first.data);
  exe->bind_output("again", second.data);
  exe->bind_output("three", three.data);
  exe->run();
  EXPECT_THAT(first.values(), testing::Each(2.0F));
  EXPECT_THAT(second.values(), testing::Each(2.0F));
  EXPECT_THAT(three.values(), testing::Each(3.0F));
}

TEST_F(Executor, ErrorsNameWhatIsNotBound) {
  const Value x = g.input("x", {DType::f32, {4, 16}});
  g.output("y", g.add1(kAdd, {x, x}));
  g.output("x", g.add1(kMultiply, {x, x}), "x");
  const auto exe = make({.name = "update"});
  Floats in(64), out(64);
  const auto message = [&] {
    try {
      exe->run();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message(), "update: input 'x' is not bound");
  exe->bind_input("x", in.data);
  EXPECT_EQ(message(), "update: output 'y' is not bound");
  exe->bind_output("y", out.data);
  EXPECT_EQ(message(), "no error");
  Floats elsewhere(64);
  exe->bind_output("x", elsewhere.data);
  EXPECT_THAT(message(), testing::HasSubstr("bound to different addresses"));
  EXPECT_THROW(exe->bind_input("z", in.data), Error);
}

TEST_F(Executor, AnomalyNamesOpModuleAndLine) {
  const Value x = g.input("x", {DType::f32, {4, 16}});
  Value y = x;
  {
    const ir::Scope layer(g, "layers.3");
    y = g.add1(kInverse, {x});
  }
  g.output("y", g.add1(kAdd, {y, y}));
  const auto exe = make({.detect_anomaly = true});
  Floats in(64, 2), out(64);
  bind(*exe, in, out);
  exe->run();
  in.data[17] = 0;
  try {
    exe->run();
    FAIL() << "no error";
  } catch (const ExitError& error) {
    EXPECT_EQ(error.code(), ExitCode::non_finite);
    EXPECT_THAT(error.what(), testing::HasSubstr("result 0 of test_inverse"));
    EXPECT_THAT(error.what(), testing::HasSubstr("in layers.3"));
    EXPECT_THAT(error.what(), testing::HasSubstr("executor_test.cpp:"));
  }
}

TEST_F(Executor, ZeroSizes) {
  const Value x = g.input("x", {DType::f32, {0, 16}});
  g.output("y", g.add1(kMultiply, {g.add1(kAdd, {x, x}), x}));
  const auto exe = make();
  exe->run();
}

TEST_F(Executor, ExecutablesShareAnArenaThatGrows) {
  const Value x = g.input("x", {DType::f32, {64, 64}});
  g.output("y", g.add1(kMultiply, {g.add1(kAdd, {x, x}), x}));
  const auto small = make();
  Graph h;
  const Value z = h.input("z", {DType::f32, {2048, 1024}});
  h.output("y", h.add1(kMultiply, {h.add1(kAdd, {z, z}), z}));
  Floats in(64 * 64, 1), out(64 * 64), big_in(2048 * 1024, 2), big_out(2048 * 1024);
  bind(*small, in, out);
  small->run();
  const auto large = compile(h, pool, arena);
  large->bind_input("z", big_in.data);
  large->bind_output("y", big_out.data);
  large->run();
  std::memset(out.data, 0, 64);
  small->run();
  EXPECT_THAT(out.values(), testing::Each(2.0F));
  EXPECT_EQ(big_out.data[2048 * 1024 - 1], 8);
}

TEST_F(Executor, ProfilesEveryCall) {
  const Value x = g.input("x", {DType::f32, {64, 64}});
  g.output("y", g.add1(kMultiply, {g.add1(kAdd, {x, x}), x}));
  const auto exe = make();
  Floats in(64 * 64, 1), out(64 * 64);
  bind(*exe, in, out);
  exe->run();
  EXPECT_THAT(exe->take_times(), testing::Each(0.0));
  exe->set_profiling(true);
  exe->run();
  const auto times = exe->take_times();
  ASSERT_EQ(times.size(), exe->nodes().size());
  EXPECT_THAT(times, testing::Each(testing::Gt(0.0)));
  EXPECT_THAT(exe->take_times(), testing::Each(0.0));
}

TEST_F(Executor, RecordsCallsInOrderUntilTold) {
  const Value x = g.input("x", {DType::f32, {64, 64}});
  g.output("y", g.add1(kMultiply, {g.add1(kAdd, {x, x}), x}));
  const auto exe = make();
  Floats in(64 * 64, 1), out(64 * 64);
  bind(*exe, in, out);
  CallLog log;
  exe->record_calls(&log);
  exe->run();
  exe->run();
  exe->record_calls(nullptr);
  exe->run();
  const auto& calls = log.calls;
  ASSERT_EQ(calls.size(), 2 * exe->nodes().size());
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].node, static_cast<int32_t>(i % exe->nodes().size()));
    EXPECT_LE(calls[i].begin, calls[i].end);
    if (i > 0) {
      EXPECT_LE(calls[i - 1].end, calls[i].begin);
    }
  }
}

TEST_F(Executor, RecordsEveryItemOnceInItsCall) {
  const Value x = g.input("x", {DType::f32, {512, 512}});
  g.output("y", g.add1(kMultiply, {g.add1(kAdd, {x, x}), x}));
  const auto exe = make();
  Floats in(512 * 512, 1), out(512 * 512);
  bind(*exe, in, out);
  CallLog log;
  exe->record_calls(&log);
  exe->run();
  exe->run();
  ASSERT_EQ(log.workers.size(), static_cast<size_t>(pool.num_threads()));
  std::vector<std::vector<std::pair<int64_t, int64_t>>> items(log.calls.size());
  for (const auto& times : log.workers) {
    for (const WorkerTime& time : times) {
      const auto call = static_cast<size_t>(time.call);
      ASSERT_LT(call, log.calls.size());
      EXPECT_LE(log.calls[call].begin, time.begin);
      EXPECT_LE(time.begin, time.end);
      EXPECT_LE(time.end, log.calls[call].end);
      ASSERT_EQ(time.phase, 0);
      items[call].emplace_back(time.first_item, time.end_item);
    }
  }
  for (auto& stretches : items) {
    ASSERT_FALSE(stretches.empty());
    std::ranges::sort(stretches);
    int64_t next = 0;
    for (const auto& [begin, end] : stretches) {
      EXPECT_EQ(begin, next);
      EXPECT_GT(end, begin);
      next = end;
    }
    EXPECT_EQ(next, items[0].back().second) << "calls of one size";
  }
}

TEST(Profile, SumsByOpAndKernel) {
  const std::vector<NodeReport> nodes = {
      {.op = "add", .fqn = "layers.0.norm", .kernel = "a", .cost = {10, 100}},
      {.op = "dot",
       .fqn = "layers.0.w1",
       .kernel = "b",
       .cost = {1000, 1},
       .type = {DType::bf16, {}}},
      {.op = "add", .fqn = "layers.12.norm", .kernel = "a", .cost = {10, 100}}};
  const std::vector<double> times = {1, 8, 3};
  const Limits limits{.flops_f32 = 100, .flops_bf16 = 500, .bytes = 50};
  const auto sums = sum_times(node_times(nodes, times, 2), op_and_kernel, limits);
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].name, "dot (b)");
  EXPECT_EQ(sums[0].seconds, 4);
  EXPECT_EQ(sums[0].limit, 2);  // 1000 flops at 500
  EXPECT_EQ(sums[1].calls, 2);
  EXPECT_EQ(sums[1].seconds, 2);
  EXPECT_EQ(sums[1].bytes, 200);
  EXPECT_EQ(sums[1].limit, 4);  // 100 bytes at 50, twice
  const std::string table = to_table(sums);
  EXPECT_THAT(table, testing::HasSubstr("66.7 %   4000.000 ms      1 calls"));
  EXPECT_THAT(table, testing::HasSubstr(" 50.0 % of the limit  dot (b)"));

  const auto modules = sum_times(node_times(nodes, times, 2), module_of);
  ASSERT_EQ(modules.size(), 2U);
  EXPECT_EQ(modules[1].name, "layers.*.norm");
  EXPECT_EQ(modules[1].calls, 2);
}

TEST(Memory, StateIsZeroedAndAligned) {
  const auto state = allocate_state(5 << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(state.get()) % (2 << 20), 0U);
  const auto* bytes = static_cast<const char*>(state.get());
  for (int64_t i = 0; i < 5 << 20; i += 1000) ASSERT_EQ(bytes[i], 0);
}

}  // namespace
}  // namespace rhea::exec::cpu
