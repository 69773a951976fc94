// Rows and kernels from outside: what the table takes, and what it says when it does not.
#include "rhea/ops/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rhea/base/error.h"
#include "rhea/ops/cost.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using testing::HasSubstr;

std::string message(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::vector<ir::Type> same_type(std::span<const ir::Type> in, const ir::Attrs&) { return {in[0]}; }

const OpDef kTwice{
    .name = "table_test_twice",
    .infer = same_type,
    .decompose = [](ir::Graph&, std::span<const Value> in,
                    const ir::Attrs&) { return std::vector{multiply(add(in[0], in[0]), 2)}; },
};

TEST(Table, RowsFromOutsideAreFoundByName) {
  const ScopedAdditions additions;
  const size_t before = all_ops().size();
  add_op(kTwice, "mine.cpp");
  EXPECT_EQ(all_ops().size(), before + 1);
  EXPECT_EQ(find_op("table_test_twice"), &kTwice);
  EXPECT_EQ(origin_of(kTwice), "mine.cpp");
  EXPECT_EQ(origin_of(kRope), kInTree);
  EXPECT_THAT(outside_ops(), testing::Contains(&kTwice));
  EXPECT_EQ(message([] { add_op(kTwice, "other.cpp"); }),
            "other.cpp: op 'table_test_twice' is already registered by mine.cpp; give it another "
            "name");
}

TEST(Table, RefusesRowsThatCouldNotBeUsed) {
  static OpDef row{.name = "My Op"};
  const auto add = [] { add_op(row, "mine.cpp"); };
  EXPECT_EQ(message(add),
            "mine.cpp: op 'My Op': a name has letters a-z, digits and underscores only");
  row.name = "add";
  row.infer = same_type;
  EXPECT_THAT(message(add), HasSubstr("lacks a definition"));
  row.reference = [](const ir::ReferenceArgs&) {};
  EXPECT_THAT(message(add), HasSubstr("op 'add' must state its cost or its decomposition"));
  row.cost = cost_per_element(1);
  EXPECT_THAT(message(add), HasSubstr("op 'add' is already registered by rhea"));
  row.infer = nullptr;
  EXPECT_THAT(message(add), HasSubstr("lacks infer"));
}

TEST(Table, KernelsBelongToAnOp) {
  const ir::CpuKernel mine{.name = "table_test",
                           .accepts = [](const ir::OpInstance&) { return "never runs"; },
                           .plan = [](const ir::OpInstance&) { return ir::KernelPlan(); }};
  EXPECT_EQ(message([&] { add_cpu_kernel("ropes", mine, "mine.cpp"); }),
            "mine.cpp: kernel 'table_test' is for op 'ropes', which does not exist; the nearest is "
            "'rope'");
  EXPECT_THAT(message([&] { add_cpu_kernel("rope", {.name = "x"}, "mine.cpp"); }),
              HasSubstr("lacks plan"));
  ir::CpuKernel taken = mine;
  taken.name = kRope.cpu[0].name;
  EXPECT_THAT(message([&] { add_cpu_kernel("rope", taken, "mine.cpp"); }),
              HasSubstr("from rhea; give it another name"));
  const ScopedAdditions additions;
  EXPECT_TRUE(added_kernels(kIota).empty());
  add_cpu_kernel("iota", mine, "mine.cpp");
  ASSERT_EQ(added_kernels(kIota).size(), 1U);
  EXPECT_EQ(added_kernels(kIota)[0].origin, "mine.cpp");
  EXPECT_THAT(message([&] { add_cpu_kernel("iota", mine, "other.cpp"); }),
              HasSubstr("other.cpp: op 'iota' already has a kernel 'table_test', from mine.cpp"));
}

TEST(Table, ScopedAdditionsEndWithTheirScope) {
  {
    const ScopedAdditions additions;
    add_op(kTwice, "mine.cpp");
    add_cpu_kernel("iota",
                   {.name = "mine", .plan = [](const ir::OpInstance&) { return ir::KernelPlan(); }},
                   "mine.cpp");
  }
  EXPECT_EQ(find_op("table_test_twice"), nullptr);
  EXPECT_EQ(origin_of(kTwice), "");
  EXPECT_TRUE(added_kernels(kIota).empty());
  EXPECT_THAT(outside_ops(), testing::Not(testing::Contains(&kTwice)));
}

TEST(Table, ACostThatIsNotStatedIsThatOfTheDecomposition) {
  const std::vector<ir::Type> types = {{DType::f32, {3, 4}}};
  const ir::Attrs none;
  const ir::Cost cost = cost_of({&kTwice, types, types, &none});
  EXPECT_EQ(cost.flops, 2 * 12);
  EXPECT_EQ(cost.bytes, 2 * 12 * 4);
}

TEST(Table, LimitsNameTheFoundAndTheNeededValue) {
  EXPECT_EQ(message([] { require_multiple("my_rope", "sequence length", 200, 256); }),
            "my_rope requires a sequence length that is a multiple of 256, got 200");
  EXPECT_EQ(message([] { require_multiple("my_rope", "sequence length", 512, 256); }), "no error");
  EXPECT_EQ(message([] { require_at_most("my_rope", "head dim", 192, 128); }),
            "my_rope requires a head dim of at most 128, got 192");
}

}  // namespace
}  // namespace rhea::ops
