// Initial weights: the documented rule in f64, the distributions, and the same bits from every
// instruction set and number of threads.
#include "rhea/nn/initialise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "rhea/base/rng.h"

namespace rhea::nn {
namespace {

std::vector<float> drawn(int64_t count, const Init& init, Isa isa = active_isa(), int threads = 1,
                         uint64_t seed = 7, std::string_view fqn = "layers.0.w") {
  ThreadPool pool(threads);
  std::vector<float> values(static_cast<size_t>(count));
  initialise(values.data(), DType::f32, count, init, seed, fqn, pool, isa);
  return values;
}

// The rule of initialise.h, one element at a time.
double by_the_rule(int64_t i, const Init& init, uint64_t seed, std::string_view fqn) {
  const auto block = static_cast<uint64_t>(i / 64), lane = static_cast<uint64_t>(i % 16);
  const int word = static_cast<int>(i % 64 / 16);
  for (uint64_t attempt = 0;; ++attempt) {
    const auto words = philox(rng_key(seed, fqn), 16 * block + lane, attempt);
    const auto first = static_cast<size_t>(word / 2 * 2);
    // In f32 already here: near 1 the logarithm tells the difference.
    const double u = (static_cast<float>(words[first] >> 1) + 0.5F) * 0x1p-31F;
    const double angle = 2 * std::numbers::pi * static_cast<double>(words[first + 1]) * 0x1p-32;
    const double value = init.std * std::sqrt(-2 * std::log(u)) *
                         (word % 2 == 0 ? std::cos(angle) : std::sin(angle));
    if (init.kind == Init::Kind::normal || std::abs(value) <= init.cut) return value;
  }
}

TEST(Init, ElementsFollowTheRule) {
  for (const Init& init : {Init::normal(0.02), Init::truncated_normal(0.5, 0.4)}) {
    const auto values = drawn(100001, init, Isa::plain);
    for (size_t i = 0; i < values.size(); ++i) {
      const double expected = by_the_rule(static_cast<int64_t>(i), init, 7, "layers.0.w");
      ASSERT_NEAR(values[i], expected, 2e-6 * init.std) << "element " << i;
    }
  }
}

TEST(Init, UniformFillsItsRange) {
  const auto values = drawn(100000, Init::uniform(0.25));
  double sum = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double v = static_cast<double>(values[i]);
    ASSERT_LE(std::abs(v), 0.25);
    sum += v;
    squares += v * v;
    if (i > 8) continue;
    const uint32_t word = philox(rng_key(7, "layers.0.w"), i / 4)[i % 4] >> 8;
    EXPECT_EQ(v, 0.25 * (static_cast<double>(word) * 0x1p-23 - 1)) << i;
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_NEAR(sum / count, 0, 0.002);
  EXPECT_NEAR(squares / count, 0.25 * 0.25 / 3, 0.0005);
  EXPECT_EQ(drawn(10, Init::uniform(0.25), Isa::plain, 3), drawn(10, Init::uniform(0.25)));
}

TEST(Init, BitsDependNeitherOnTheInstructionSetNorOnThreads) {
  // Ends inside a vector, and a cut that redraws a third of the elements.
  for (const Init& init : {Init::normal(1), Init::truncated_normal(1, 1)}) {
    for (const int64_t count : {int64_t{1}, int64_t{63}, int64_t{130}, int64_t{70001}}) {
      const auto expected = drawn(count, init, Isa::plain);
      for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512}) {
        if (isa > detected_isa()) continue;
        for (const int threads : {1, 2, 5}) {
          const auto values = drawn(count, init, isa, threads);
          EXPECT_EQ(0, std::memcmp(values.data(), expected.data(), values.size() * 4))
              << isa_name(isa) << ", " << threads << " threads, " << count << " elements";
        }
      }
    }
  }
}

TEST(Init, AShorterTensorIsTheStartOfALongerOne) {
  const auto longer = drawn(1000, Init::normal(1)), shorter = drawn(77, Init::normal(1));
  EXPECT_EQ(0, std::memcmp(longer.data(), shorter.data(), shorter.size() * 4));
}

TEST(Init, SeedsAndNamesGiveOtherValues) {
  const auto one = drawn(64, Init::normal(1));
  EXPECT_NE(one, drawn(64, Init::normal(1), active_isa(), 1, 8));
  EXPECT_NE(one, drawn(64, Init::normal(1), active_isa(), 1, 7, "layers.1.w"));
}

struct Moments {
  double mean = 0, variance = 0, kurtosis = 0;
};
Moments moments(const std::vector<float>& values) {
  Moments m;
  const auto n = static_cast<double>(values.size());
  for (const float x : values) m.mean += x / n;
  for (const float x : values) {
    const double square = (x - m.mean) * (x - m.mean);
    m.variance += square / n;
    m.kurtosis += square * square / n;
  }
  m.kurtosis /= m.variance * m.variance;
  return m;
}

TEST(Init, NormalHasTheMomentsOfANormal) {
  const auto values = drawn(2000000, Init::normal(0.02));
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 0, 5 * 0.02 / std::sqrt(2e6));
  EXPECT_NEAR(m.variance / (0.02 * 0.02), 1, 0.005);
  EXPECT_NEAR(m.kurtosis, 3, 0.03);
  // Neighbours and elements that share a counter are independent.
  for (const size_t distance : {1U, 16U, 32U, 48U, 64U}) {
    double product = 0;
    for (size_t i = 0; i + distance < values.size(); ++i)
      product += static_cast<double>(values[i]) * values[i + distance];
    EXPECT_NEAR(product / (2e6 * 0.02 * 0.02), 0, 5 / std::sqrt(2e6)) << "distance " << distance;
  }
}

TEST(Init, TruncatedNormalStaysWithinItsCut) {
  const auto values = drawn(500000, Init::truncated_normal(0.1, 0.2));
  for (const float x : values) ASSERT_LE(std::abs(x), 0.2F);
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 0, 1e-3);
  EXPECT_NEAR(m.variance / 0.01, 0.7737413, 0.005);  // cut at two standard deviations
}

template <class T>
void expect_rounded_values(DType dtype) {
  constexpr int64_t kCount = 1003;
  const Init init = Init::truncated_normal(0.02, 0.06);
  const auto expected = drawn(kCount, init);
  ThreadPool pool(1);
  for (const Isa isa : {Isa::plain, active_isa()}) {
    std::vector<T> values(kCount + 1, static_cast<T>(9.0F));
    initialise(values.data(), dtype, kCount, init, 7, "layers.0.w", pool, isa);
    for (size_t i = 0; i < kCount; ++i)
      ASSERT_EQ(static_cast<float>(values[i]), static_cast<float>(static_cast<T>(expected[i])))
          << dtype_name(dtype) << " element " << i;
    EXPECT_EQ(static_cast<float>(values[kCount]), 9) << "written past the end";
  }
}

TEST(Init, OtherTypesHoldTheRoundedValue) {
  expect_rounded_values<bf16>(DType::bf16);
  expect_rounded_values<f16>(DType::f16);
  expect_rounded_values<double>(DType::f64);
}

TEST(Init, NormsStartAtOneAndBiasesAtZero) {
  EXPECT_EQ(drawn(5, Init::ones()), std::vector<float>(5, 1.0F));
  EXPECT_EQ(drawn(5, Init::zeros()), std::vector<float>(5, 0.0F));
}

}  // namespace
}  // namespace rhea::nn
