// The norm that products sum up is that of the gradients.
#include <gtest/gtest.h>

#include <cmath>

#include "rhea/base/cpu_tiles.h"
#include "rhea/components/train_step/test_training.h"

namespace rhea::train_step {
namespace {

StepOptions one_microbatch(DType compute, bool from_products) {
  StepOptions options = small_options(compute);
  options.accumulates = false;
  if (!from_products) options.disable_passes = {"norm_in_products"};
  return options;
}

class NormOfProducts : public testing::TestWithParam<std::tuple<DType, bool>> {};

TEST_P(NormOfProducts, IsThatOfTheGradientsAndChangesNoOtherBit) {
  const auto [compute, tied] = GetParam();
  const Trained summed = train(small_model(tied), one_microbatch(compute, true));
  const Trained read = train(small_model(tied), one_microbatch(compute, false));
  double squares = 0;
  for (const auto& [name, bytes] : summed.gradients) {
    for (const double x : as_floats(bytes)) squares += x * x;
  }
  EXPECT_NEAR(summed.norm, std::sqrt(squares), 1e-6 * summed.norm);
  EXPECT_NEAR(summed.norm, read.norm, 1.2e-7 * read.norm);  // the last bit of f32
  EXPECT_EQ(summed.losses, read.losses);
  EXPECT_EQ(summed.gradients, read.gradients);
  EXPECT_EQ(summed.end, read.end);
  EXPECT_EQ(summed.state, read.state);
}

// Two layers of wqkv, wo, w1, w2, w3 come from products; tables and the norms' weights do not.
TEST_P(NormOfProducts, ReadsOnlyWhatNoProductLeaves) {
  const auto [compute, tied] = GetParam();
  const StepGraphs graphs = build_step_graphs(small_model(tied), one_microbatch(compute, true));
  int sums = 0, gradients = 0;
  for (const auto& input : graphs.norm.inputs())
    (input.name.starts_with("squares.") ? sums : gradients) += 1;
  // Below AVX-512 oneDNN runs the products of f32, where the build has it, and on matrix tiles
  // those of bf16; it sums up nothing.
  const bool panels = compute == DType::bf16 ? !active_tiles() : active_isa() >= Isa::avx512;
  EXPECT_TRUE(sums == 10 || (!panels && sums == 0)) << sums;
  EXPECT_EQ(sums + gradients, static_cast<int>(graphs.parameters.size()));
}

INSTANTIATE_TEST_SUITE_P(Models, NormOfProducts,
                         testing::Combine(testing::Values(DType::f32, DType::bf16),
                                          testing::Bool()));

}  // namespace
}  // namespace rhea::train_step
