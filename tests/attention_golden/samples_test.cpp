// Every sample of the attention, rotary, norm and swiglu rows through every kernel that runs here:
// against the f64 reference, with gaps between rows, and with the same bits for 1, 2 and 5 threads.
#include <gtest/gtest.h>

#include "rhea/ops/ops.h"
#include "tests/support/kernel_run.h"

namespace rhea::testing {
namespace {

double sample_tolerance(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 5e-6;
    case DType::f64:
      return 1e-12;
    case DType::f16:
      return 3e-3;
    default:
      return 1.5e-2;
  }
}

const ir::OpDef* const kRows[] = {&ops::kAttention,     &ops::kAttentionGrad, &ops::kRope,
                                  &ops::kRmsNorm,       &ops::kRmsNormGrad,   &ops::kLayerNorm,
                                  &ops::kLayerNormGrad, &ops::kSwiglu,        &ops::kSwigluGrad};

class Samples : public ::testing::TestWithParam<const ir::OpDef*> {};

TEST_P(Samples, EveryKernelAgreesWithTheReference) {
  ThreadPool pool(2);
  for (const ir::Sample& sample : GetParam()->samples()) {
    std::vector<ir::Type> types;
    for (const auto& input : sample.inputs) types.push_back(input.type);
    const Call call(*GetParam(), types, sample.attrs);
    const auto in = draw(sample);
    const auto wanted = reference(call, in);
    for (const ir::CpuKernel* kernel : usable_kernels(call))
      for (const int64_t gap : {0, 48}) {
        const auto got = run(call, *kernel, in, pool, gap);
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_LE(relative_error(got[i].values(), wanted[i]),
                    sample_tolerance(types[0].dtype) * sample.tolerance_scale)
              << sample.name << " " << kernel->name << " result " << i << " gap " << gap;
      }
  }
}

TEST_P(Samples, BitsDoNotDependOnThreads) {
  ThreadPool one(1), two(2), five(5);
  for (const ir::Sample& sample : GetParam()->samples()) {
    std::vector<ir::Type> types;
    for (const auto& input : sample.inputs) types.push_back(input.type);
    const Call call(*GetParam(), types, sample.attrs);
    const auto in = draw(sample);
    for (const ir::CpuKernel* kernel : usable_kernels(call)) {
      const auto alone = run(call, *kernel, in, one);
      for (ThreadPool* pool : {&two, &five}) {
        const auto together = run(call, *kernel, in, *pool);
        for (size_t i = 0; i < alone.size(); ++i)
          EXPECT_TRUE(alone[i].same_bits(together[i])) << sample.name << " " << kernel->name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Samples, ::testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param->name); });

}  // namespace
}  // namespace rhea::testing
