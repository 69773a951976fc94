// The product that adds has the bits of the product and the add.
#include <gtest/gtest.h>

#include <algorithm>

#include "rhea/ops/contract/case.h"

namespace rhea::ops {
namespace {

Tensor dot_general_of(const ContractCase& added, std::string_view kernel) {
  ir::Sample sample = added.sample;
  sample.inputs.pop_back();
  for (size_t i = 0; i < 2; ++i) sample.inputs[i].values = added.inputs[i];
  sample.attrs = {
      {"lhs_contract", int64_t{0}}, {"rhs_contract", int64_t{0}}, {"dtype", DType::f32}};
  const auto c = make_case(kDotGeneral, sample);
  const auto kernels = runnable_kernels(*c);
  const auto same = std::ranges::find(kernels, kernel, &Runnable::name);
  if (same == kernels.end()) return {};
  Findings findings;
  return run_kernel(*c, same->plan, {}, findings)[0];
}

TEST(WeightGradAdd, HasTheBitsOfProductAndAdd) {
  for (const ir::Sample& sample : kWeightGradAdd.samples()) {
    const auto c = make_case(kWeightGradAdd, sample);
    for (const auto& [name, plan, added] : runnable_kernels(*c)) {
      SCOPED_TRACE(testing::Message() << sample.name << ", kernel " << name);
      Tensor expected = dot_general_of(*c, name);
      ASSERT_EQ(expected.size(), c->inputs[2].size());
      for (size_t i = 0; i < expected.size(); ++i)
        expected[i] = static_cast<double>(static_cast<float>(c->inputs[2][i]) +
                                          static_cast<float>(expected[i]));
      Findings findings;
      for (const auto& shared : {std::pair(-1, -1), std::pair(2, 0)})
        EXPECT_TRUE(same_bits(run_kernel(*c, plan, {.shared = shared}, findings)[0], expected))
            << "in place: " << (shared.first == 2);
    }
  }
}

}  // namespace
}  // namespace rhea::ops
