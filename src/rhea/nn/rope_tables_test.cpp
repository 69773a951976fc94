// Check values of every scaling, and what is refused.
#include "rhea/nn/rope_tables.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "rhea/base/error.h"

namespace rhea::nn {
namespace {

void expect_frequencies(const RopeSpec& spec, const std::map<size_t, double>& expected) {
  check(spec);
  const auto w = inverse_frequencies(spec, 1);
  for (const auto& [i, value] : expected) EXPECT_NEAR(w[i] / value, 1, 1e-7) << "i=" << i;
}

TEST(RopeTables, Llama3ScalingOfTheLlama31Models) {
  const RopeSpec spec{.rotary_dim = 128,
                      .theta = 5e5,
                      .scaling = RopeSpec::Scaling::llama3,
                      .factor = 8,
                      .original_max = 8192};
  expect_frequencies(spec, {{28, 0.00321144599},
                            {29, 0.00216657076},
                            {30, 0.00137189357},
                            {34, 1.78507813e-4},
                            {36, 7.78465527e-5},
                            {63, 3.06892599e-7}});
}

TEST(RopeTables, Llama3ScalingOfTheLlama32Models) {
  const RopeSpec spec{.rotary_dim = 64,
                      .theta = 5e5,
                      .scaling = RopeSpec::Scaling::llama3,
                      .factor = 32,
                      .original_max = 8192};
  expect_frequencies(spec, {{14, 0.00321144599},
                            {15, 0.00129054793},
                            {17, 9.7082878e-5},
                            {18, 1.94616382e-5},
                            {31, 9.41830673e-8}});
}

TEST(RopeTables, YarnWithoutTruncation) {
  const RopeSpec spec{.rotary_dim = 64,
                      .theta = 1.5e5,
                      .scaling = RopeSpec::Scaling::yarn,
                      .factor = 32,
                      .original_max = 4096,
                      .truncate = false};
  expect_frequencies(
      spec, {{8, 0.0508132748}, {10, 0.0193350011}, {15, 0.0010526021}, {31, 3.02351143e-7}});
  EXPECT_NEAR(magnitude(spec) * magnitude(spec), 1.81326043, 1e-8);
}

TEST(RopeTables, YarnWithTruncation) {
  const RopeSpec spec{.rotary_dim = 64,
                      .theta = 1e4,
                      .scaling = RopeSpec::Scaling::yarn,
                      .factor = 40,
                      .original_max = 4096};
  expect_frequencies(spec, {{12, 0.0268793601}, {17, 0.00356199749}, {23, 3.33380358e-5}});
}

TEST(RopeTables, DynamicAndLongropeFollowTheLongestPosition) {
  const RopeSpec dynamic{
      .rotary_dim = 8, .scaling = RopeSpec::Scaling::dynamic, .factor = 2, .original_max = 16};
  EXPECT_EQ(inverse_frequencies(dynamic, 16), inverse_frequencies(dynamic, 3));
  EXPECT_LT(inverse_frequencies(dynamic, 32)[1], inverse_frequencies(dynamic, 16)[1]);
  const RopeSpec longrope{.rotary_dim = 4,
                          .scaling = RopeSpec::Scaling::longrope,
                          .factor = 4,
                          .original_max = 16,
                          .short_factor = {1, 1},
                          .long_factor = {2, 4}};
  EXPECT_NEAR(inverse_frequencies(longrope, 16)[1] / inverse_frequencies(longrope, 17)[1], 4,
              1e-12);
  EXPECT_NEAR(magnitude(longrope), std::sqrt(1 + std::log(4.0) / std::log(16.0)), 1e-12);
}

TEST(RopeTables, RefusesWhatIsMissing) {
  EXPECT_THROW(check({.rotary_dim = 7}), Error);
  EXPECT_THROW(check({.rotary_dim = 8, .scaling = RopeSpec::Scaling::yarn, .factor = 2}), Error);
  EXPECT_THROW(check({.rotary_dim = 8,
                      .scaling = RopeSpec::Scaling::longrope,
                      .factor = 2,
                      .original_max = 4,
                      .short_factor = {1}}),
               Error);
  EXPECT_THROW(parse_scaling("ntk-by-parts"), Error);
}

}  // namespace
}  // namespace rhea::nn
