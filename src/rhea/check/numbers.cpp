// Differences and distances in units in the last place.
#include "rhea/check/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "rhea/base/error.h"

namespace rhea::check {
namespace {

// Numbers of the dtype in their order, so that neighbours are 1 apart; +0 and -0 are the same.
int64_t place_of(double value, DType dtype) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const int shift = dtype == DType::bf16 ? 16 : 0;
  const int64_t magnitude = (bits & 0x7fffffffU) >> shift;
  return (bits >> 31) != 0 ? -magnitude : magnitude;
}

}  // namespace

Difference difference(const Tensor& x, const Tensor& of) {
  RHEA_CHECK(x.size() == of.size(), "tensors of {} and {} elements", x.size(), of.size());
  double largest = 0;
  Difference made;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isfinite(of[i])) largest = std::max(largest, std::abs(of[i]));
    if (x[i] == of[i] || (std::isnan(x[i]) && std::isnan(of[i]))) continue;
    const double apart = std::abs(x[i] - of[i]);
    made.max_abs =
        std::max(made.max_abs, std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart);
  }
  if (made.max_abs > 0)
    made.max_rel = largest > 0 ? made.max_abs / largest : std::numeric_limits<double>::infinity();
  return made;
}

void UlpHistogram::add(const Tensor& x, const Tensor& of, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::bf16) return;
  for (size_t i = 0; i < x.size(); ++i) {
    size_t bin = kLimits.size();
    if (!std::isnan(x[i]) && !std::isnan(of[i])) {
      const int64_t apart = std::abs(place_of(x[i], dtype) - place_of(of[i], dtype));
      bin = static_cast<size_t>(std::ranges::lower_bound(kLimits, apart) - kLimits.begin());
    } else if (std::isnan(x[i]) && std::isnan(of[i])) {
      bin = 0;
    }
    ++counts[bin];
  }
}

std::string UlpHistogram::text() const {
  const auto all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  std::string text;
  for (size_t bin = 0; bin < counts.size(); ++bin) {
    if (counts[bin] == 0) continue;
    const std::string range = bin == kLimits.size() ? fmt::format("more than {}", kLimits.back())
                              : bin > 0 && kLimits[bin] > kLimits[bin - 1] + 1
                                  ? fmt::format("{}-{}", kLimits[bin - 1] + 1, kLimits[bin])
                                  : fmt::format("{}", kLimits[bin]);
    text += fmt::format("{}{}: {:.4g} %", text.empty() ? "" : ", ", range,
                        100 * static_cast<double>(counts[bin]) / all);
  }
  return text;
}

}  // namespace rhea::check
