// The vector functions against f64, and the same bits from every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "rhea/base/cpu_features.h"
#include "rhea/base/dtype.h"

#define RHEA_DECLARE(isa)                                                             \
  namespace rhea::isa {                                                               \
  void test_unary(int function, int64_t n, const float* x, float* y);                 \
  void test_fma(int64_t n, const float* a, const float* b, const float* c, float* y); \
  void test_across(const float* x, float* y);                                         \
  void test_sum_each(const float* x, float* y);                                       \
  }
RHEA_DECLARE(isa_plain)
#if defined(__x86_64__)
RHEA_DECLARE(isa_avx2)
RHEA_DECLARE(isa_avx512)
RHEA_DECLARE(isa_avx512_bf16)
#endif

namespace rhea {
namespace {

struct Variant {
  Isa isa;
  decltype(&isa_plain::test_unary) unary;
  decltype(&isa_plain::test_fma) fma;
  decltype(&isa_plain::test_across) across;
  decltype(&isa_plain::test_sum_each) sum_each;
};

std::vector<Variant> variants() {
#define RHEA_VARIANT(isa)                                                        \
  {Isa::isa, isa_##isa::test_unary, isa_##isa::test_fma, isa_##isa::test_across, \
   isa_##isa::test_sum_each}
  std::vector<Variant> all = {
    RHEA_VARIANT(plain),
#if defined(__x86_64__)
    RHEA_VARIANT(avx2),
    RHEA_VARIANT(avx512),
    RHEA_VARIANT(avx512_bf16),
#endif
  };
#undef RHEA_VARIANT
  std::erase_if(all, [](const Variant& v) { return v.isa > detected_isa(); });
  return all;
}

bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// Distance in units in the last place of the f32 nearest to `exact`.
double ulp_error(float got, double exact) {
  const int exponent = exact == 0 ? -126 : std::max(std::ilogb(exact), -126);
  return std::abs(static_cast<double>(got) - exact) / std::ldexp(1.0, exponent - 23);
}

// Floats of all magnitudes and signs, subnormals, infinities and NaN included.
std::vector<float> floats_of_all_sizes() {
  std::vector<float> x;
  for (uint64_t u = 0; u < (uint64_t{1} << 32); u += 20011)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(u)));
  const float inf = std::numeric_limits<float>::infinity();
  for (const float v :
       {0.0f,      -0.0f,    inf,      -inf,     std::nanf(""), 1.0f,          -1.0f,
        88.72283f, 88.7229f, -103.97f, 128.0f,   -149.0f,       -150.0f,       0.93f,
        0.625f,    65504.0f, 65519.9f, 65520.0f, 5.9604645e-8f, 2.9802322e-8f, 6.1035156e-5f})
    x.push_back(v);
  return x;
}

struct Function {
  const char* name;
  double max_ulp;
  double (*exact)(double);
};
const Function kFunctions[] = {
    {"exp", 1.0, [](double x) { return std::exp(x); }},
    {"exp2", 1.0, [](double x) { return std::exp2(x); }},
    {"log", 1.0, [](double x) { return std::log(x); }},
    {"tanh", 2.0, [](double x) { return std::tanh(x); }},
    {"logistic", 3.0, [](double x) { return 1.0 / (1.0 + std::exp(-x)); }},
    {"erf", 2.0, [](double x) { return std::erf(x); }},
    {"rsqrt", 1.5, [](double x) { return 1.0 / std::sqrt(x); }},
    {"round_bf16", 0,
     [](double x) { return static_cast<double>(static_cast<float>(bf16(static_cast<float>(x)))); }},
    {"round_f16", 0,
     [](double x) { return static_cast<double>(static_cast<float>(f16(static_cast<float>(x)))); }},
};

TEST(Simd, FunctionsAreAccurateAndEqualOnEveryInstructionSet) {
  const std::vector<float> x = floats_of_all_sizes();
  const auto n = static_cast<int64_t>(x.size());
  for (int f = 0; f < static_cast<int>(std::size(kFunctions)); ++f) {
    const Function& function = kFunctions[f];
    std::vector<float> plain(x.size());
    isa_plain::test_unary(f, n, x.data(), plain.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = function.exact(static_cast<double>(x[i]));
      const float nearest = static_cast<float>(exact);
      if (!std::isfinite(nearest)) {
        EXPECT_TRUE(same_bits(nearest, plain[i]))
            << function.name << "(" << x[i] << ") = " << plain[i] << ", expected " << nearest;
      } else {
        ASSERT_LE(ulp_error(plain[i], exact), function.max_ulp)
            << function.name << "(" << x[i] << ") = " << plain[i] << ", expected " << exact;
      }
    }
    for (const Variant& variant : variants()) {
      std::vector<float> y(x.size());
      variant.unary(f, n, x.data(), y.data());
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(same_bits(y[i], plain[i]))
            << function.name << "(" << x[i] << ") is " << y[i] << " with " << isa_name(variant.isa)
            << " and " << plain[i] << " in plain C++";
      }
    }
  }
}

TEST(Simd, FusedProductIsRoundedOnce) {
  std::mt19937 random(1);
  // exponents near each other, so that the three parts overlap in every way
  const auto any = [&] {
    const auto word = static_cast<uint32_t>(random());
    const uint32_t exponent = 100 + static_cast<uint32_t>(random() % 56);
    return std::bit_cast<float>((word & 0x807fffffu) | (exponent << 23));
  };
  std::vector<float> a(200000), b(a.size()), c(a.size()), y(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = any();
    b[i] = any();
    c[i] = i % 2 == 0 ? any() : -a[i] * b[i];
    if (i % 101 == 0) c[i] = std::numeric_limits<float>::infinity();
    if (i % 103 == 0) a[i] = 3e38f;
    if (i % 107 == 0) b[i] = a[i] * 1e-38f;
  }
  for (const Variant& variant : variants()) {
    variant.fma(static_cast<int64_t>(a.size()), a.data(), b.data(), c.data(), y.data());
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_TRUE(same_bits(y[i], std::fma(a[i], b[i], c[i])))
          << isa_name(variant.isa) << ": fma(" << a[i] << ", " << b[i] << ", " << c[i]
          << ") = " << y[i];
    }
  }
}

TEST(Simd, SumsAcrossLanesHaveOneTree) {
  float x[16];
  for (int i = 0; i < 16; ++i) x[i] = 1.0f / static_cast<float>(3 * i + 1);
  float pairs[8];
  for (int i = 0; i < 8; ++i) pairs[i] = x[i] + x[i + 8];
  for (int width = 4; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) pairs[i] += pairs[i + width];
  }
  for (const Variant& variant : variants()) {
    float y[3];
    variant.across(x, y);
    EXPECT_EQ(y[0], pairs[0]);
    EXPECT_EQ(y[1], 1.0f);
    EXPECT_NEAR(y[2], pairs[0], 1e-6);
    float with_nan[16];
    std::copy(std::begin(x), std::end(x), with_nan);
    with_nan[5] = std::nanf("");
    variant.across(with_nan, y);
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  }
}

TEST(Simd, SumsOfSixteenVectorsHaveTheTreeOfOne) {
  std::mt19937 random(2);
  float x[16 * 16];
  for (float& value : x) value = static_cast<float>(random()) * 0x1p-20f - 2000.0f;
  for (const Variant& variant : variants()) {
    float sums[16], one[3];
    variant.sum_each(x, sums);
    for (int i = 0; i < 16; ++i) {
      variant.across(x + 16 * i, one);
      EXPECT_TRUE(same_bits(sums[i], one[0])) << isa_name(variant.isa) << " vector " << i;
    }
  }
}

}  // namespace
}  // namespace rhea
