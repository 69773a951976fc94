// Gradients of several microbatches are summed where they lie, with the bits of products and adds.
#include <gtest/gtest.h>

#include "rhea/base/cpu_tiles.h"
#include "rhea/components/train_step/test_training.h"
#include "rhea/ops/ops.h"

namespace rhea::train_step {
namespace {

StepOptions several_microbatches(DType compute, bool in_place) {
  StepOptions options = small_options(compute);
  if (!in_place) options.disable_passes = {"add_in_products"};
  return options;
}

class Accumulation : public testing::TestWithParam<std::tuple<DType, bool>> {};

TEST_P(Accumulation, InPlaceChangesNoBitAndTakesNoMoreMemory) {
  const auto [compute, tied] = GetParam();
  const Trained in_place = train(small_model(tied), several_microbatches(compute, true));
  const Trained apart = train(small_model(tied), several_microbatches(compute, false));
  EXPECT_EQ(in_place.losses, apart.losses);
  EXPECT_EQ(in_place.norm, apart.norm);
  EXPECT_EQ(in_place.gradients, apart.gradients);
  EXPECT_EQ(in_place.end, apart.end);
  EXPECT_EQ(in_place.state, apart.state);
  EXPECT_LE(in_place.memory.activations, apart.memory.activations);
  EXPECT_LE(in_place.memory.arena, apart.memory.arena);
}

// Two layers of wqkv, wo, w1, w2, w3; the table if it is not the head's as well.
TEST_P(Accumulation, WeightGradientsNeedNoMemoryOfTheirOwn) {
  const auto [compute, tied] = GetParam();
  const StepGraphs graphs =
      build_step_graphs(small_model(tied), several_microbatches(compute, true));
  int products = 0, adds = 0;
  for (const auto& out : graphs.accumulate.outputs()) {
    const ir::OpDef* op = graphs.accumulate.node(out.value).op;
    products += op == &ops::kWeightGradAdd ? 1 : 0;
    adds += op == &ops::kAdd ? 1 : 0;
  }
  // Below AVX-512 oneDNN runs the products of f32, where the build has it, and on matrix tiles
  // those of bf16; it cannot add.
  const bool panels = compute == DType::bf16 ? !active_tiles() : active_isa() >= Isa::avx512;
  EXPECT_TRUE(products == 10 || (!panels && products == 0)) << products;
  EXPECT_EQ(adds, static_cast<int>(graphs.parameters.size()) - products - (tied ? 0 : 1));
}

INSTANTIATE_TEST_SUITE_P(Models, Accumulation,
                         testing::Combine(testing::Values(DType::f32, DType::bf16),
                                          testing::Bool()));

}  // namespace
}  // namespace rhea::train_step
