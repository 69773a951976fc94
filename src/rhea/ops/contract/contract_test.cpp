// The contract of the op table, for every row that comes with the library. A new row is covered by
// being in the table.
#include "rhea/ops/contract/contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"
#include "rhea/ops/table.h"
#include "tests/support/error_of.h"
#include "tests/support/scoped_environment.h"

namespace rhea::ops {
namespace {

class Contract : public testing::TestWithParam<std::tuple<const OpDef*, ContractCheck>> {};

TEST_P(Contract, Holds) {
  const auto& [op, check] = GetParam();
  Findings findings;
  check.run(*op, findings);
  for (const std::string& failure : findings.failures()) ADD_FAILURE() << failure;
  if (!findings.skipped().empty()) GTEST_SKIP() << findings.skipped();
}

INSTANTIATE_TEST_SUITE_P(Ops, Contract,
                         testing::Combine(testing::ValuesIn(all_ops().begin(), all_ops().end()),
                                          testing::ValuesIn(contract_checks().begin(),
                                                            contract_checks().end())),
                         [](const auto& test) {
                           return fmt::format("{}_{}", std::get<0>(test.param)->name,
                                              std::get<1>(test.param).name);
                         });

// A right row, of which the tests below make wrong ones.
void square(const ir::KernelArgs& args, const ir::OpInstance&) {
  const float* x = args.in[0].as<const float>();
  for (int64_t i = args.begin; i < args.end; ++i) args.out[0].as<float>()[i] = x[i] * x[i];
}

OpDef right_row() {
  return {
      .name = "contract_test_square",
      .infer = [](std::span<const ir::Type> in,
                  const ir::Attrs&) { return std::vector<ir::Type>{in[0]}; },
      .vjp = [](const ir::VjpArgs& args) -> std::vector<Value> {
        return {multiply(multiply(args.inputs[0], args.cotangents[0]), 2)};
      },
      .shard = shard_elementwise,
      .cpu = {to_cpu_kernel(
          {.name = "plain",
           .items = [](const ir::OpInstance& node) { return num_elements(node.in[0].shape); },
           .run = square})},
      .cost = cost_per_element(1),
      .samples = []() -> std::vector<ir::Sample> {
        return {{.name = "vector", .inputs = {uniform(DType::f32, {33})}}};
      },
      .reference =
          [](const ir::ReferenceArgs& args) {
            for (size_t i = 0; i < args.in[0].size(); ++i)
              args.out[0][i] = args.in[0][i] * args.in[0][i];
          },
  };
}

std::string failures(const OpDef& row, std::string_view check) {
  Findings findings;
  for (const ContractCheck& c : contract_checks()) {
    if (c.name == check) c.run(row, findings);
  }
  return fmt::format("{}", fmt::join(findings.failures(), "\n"));
}

// With the kernels that the row takes where the CPU has matrix tiles; without them the library
// computes the same in its other way.
TEST(ContractOnTiles, HoldsForProducts) {
  const support::ScopedEnvironment isa("RHEA_ISA", "amx_bf16");
  for (const ContractCheck& check : contract_checks())
    EXPECT_EQ(failures(kDotGeneral, check.name), "") << check.name;
}

TEST(ContractCatches, NothingOfARightRow) {
  static const OpDef row = right_row();
  const ScopedAdditions additions;
  add_op(row, "contract_test");
  for (const ContractCheck& check : contract_checks())
    EXPECT_EQ(failures(row, check.name), "") << check.name;
}

TEST(ContractCatches, AForwardThatIsRightWithABackwardThatIsWrong) {
  OpDef row = right_row();
  row.vjp = [](const ir::VjpArgs& args) -> std::vector<Value> {
    return {multiply(args.inputs[0], args.cotangents[0])};
  };
  EXPECT_EQ(failures(row, "EveryKernelAgrees"), "");
  EXPECT_THAT(failures(row, "GradientEqualsDifferences"),
              testing::HasSubstr("sample vector: gradient of operand 0 element 0: vjp gives "));
}

TEST(ContractCatches, AKernelThatLeavesItsItemsOrItsBuffers) {
  OpDef row = right_row();
  row.cpu = {to_cpu_kernel(
      {.name = "past", .items = [](const ir::OpInstance&) { return int64_t{34}; }, .run = square})};
  EXPECT_THAT(failures(row, "EveryKernelAgrees"),
              testing::HasSubstr("sample vector: kernel past: wrote past result 0"));
  row.cpu = {to_cpu_kernel({.name = "first",
                            .items = [](const ir::OpInstance&) { return int64_t{33}; },
                            .run =
                                [](const ir::KernelArgs& args, const ir::OpInstance& node) {
                                  square(args, node);
                                  args.out[0].as<float>()[args.begin] = 7;
                                }})};
  EXPECT_THAT(failures(row, "EveryKernelAgrees"),
              testing::AllOf(testing::HasSubstr("result 0 element 0: expected "),
                             testing::HasSubstr("result 0 differs with the grid cut into 3")));
}

TEST(ContractCatches, ARowWithoutSamplesAndAWrongSharding) {
  OpDef row = right_row();
  row.samples = nullptr;
  EXPECT_THAT(failures(row, "RowIsComplete"), testing::HasSubstr("lacks samples"));
  row = right_row();
  row.shard = [](const ir::OpInstance&) { return std::string("a->b"); };
  EXPECT_NE(failures(row, "HalvesAlongAFactorMakeTheWhole"), "");
  row.shard = [](const ir::OpInstance&) { return std::string("abc->a"); };
  EXPECT_THAT(failures(row, "HalvesAlongAFactorMakeTheWhole"),
              testing::HasSubstr("shard 'abc->a' is for operands or results of other ranks"));
}

TEST(ContractCatches, AReferenceThatResizesItsResult) {
  OpDef row = right_row();
  row.reference = [](const ir::ReferenceArgs& args) { args.out[0].resize(99); };
  EXPECT_THAT(support::error_of([&] { failures(row, "EveryKernelAgrees"); }),
              testing::AllOf(testing::HasSubstr("reference: leaves result 0 with 99 elements"),
                             testing::HasSubstr("infer says f32[33]")));
}

}  // namespace
}  // namespace rhea::ops
