// The formula of each published scaling, as Transformers computes it; check values are in
// rope_tables_test.cpp.
#include "rhea/nn/rope_tables.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "rhea/base/error.h"

namespace rhea::nn {
namespace {

using Scaling = RopeSpec::Scaling;

// Dim (fractional) that turns `turns` times within the original context.
double yarn_dim(const RopeSpec& spec, double turns) {
  return static_cast<double>(spec.rotary_dim) *
         std::log(spec.original_max / (2 * std::numbers::pi * turns)) / (2 * std::log(spec.theta));
}

double yarn_magnitude(double factor, double scale) {
  return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

void scale_llama3(const RopeSpec& spec, std::vector<double>& w) {
  for (double& x : w) {
    const double wavelength = 2 * std::numbers::pi / x;
    if (wavelength < spec.original_max / spec.high_freq_factor) continue;
    if (wavelength > spec.original_max / spec.low_freq_factor) {
      x /= spec.factor;
      continue;
    }
    const double s = (spec.original_max / wavelength - spec.low_freq_factor) /
                     (spec.high_freq_factor - spec.low_freq_factor);
    x = (1 - s) * x / spec.factor + s * x;
  }
}

void scale_yarn(const RopeSpec& spec, std::vector<double>& w) {
  double low = yarn_dim(spec, spec.beta_fast);
  double high = yarn_dim(spec, spec.beta_slow);
  if (spec.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  const double last = static_cast<double>(spec.rotary_dim - 1);
  low = std::clamp(low, 0.0, last);
  high = std::clamp(high, 0.0, last);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < w.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    w[i] = w[i] / spec.factor * ramp + w[i] * (1 - ramp);
  }
}

void positive(double value, const char* name) {
  if (!(value > 0) || !std::isfinite(value))
    throw Error("rope: {} must be a positive number, got {}", name, value);
}

void check_scaling(const RopeSpec& spec) {
  positive(spec.factor, "factor");
  if (spec.scaling != Scaling::linear)
    positive(spec.original_max, "original_max_position_embeddings");
  if (spec.scaling == Scaling::llama3 && !(spec.high_freq_factor > spec.low_freq_factor))
    throw Error("rope: high_freq_factor ({}) must be above low_freq_factor ({})",
                spec.high_freq_factor, spec.low_freq_factor);
  if (spec.scaling == Scaling::longrope) {
    const auto pairs = static_cast<size_t>(spec.rotary_dim / 2);
    if (spec.short_factor.size() != pairs || spec.long_factor.size() != pairs)
      throw Error("rope: longrope needs {} short and long factors, got {} and {}", pairs,
                  spec.short_factor.size(), spec.long_factor.size());
  }
}

// Numbers that are fine one by one may still give tables of NaN.
void check_result(const RopeSpec& spec) {
  // Published models turn their fastest dims by one radian from token to token; at a thousand times
  // that nothing but noise is left.
  constexpr double kFastest = 1000;
  for (const double length : {1.0, 2 * spec.original_max}) {
    const auto w = inverse_frequencies(spec, static_cast<int64_t>(std::min(length, 1e9)));
    for (size_t i = 0; i < w.size(); ++i) {
      if (w[i] > 0 && w[i] <= kFastest) continue;
      throw Error(
          "rope: theta {}, scaling and factors turn pair {} by {} radians from token to token; "
          "that must lie in (0, {}]",
          spec.theta, i, w[i], kFastest);
    }
  }
  if (const double scale = magnitude(spec); !(scale > 0 && scale <= kFastest))
    throw Error("rope: the factors multiply cos and sin by {}; that must lie in (0, {}]", scale,
                kFastest);
}

}  // namespace

RopeSpec::Scaling parse_scaling(const std::string& name) {
  if (name.empty() || name == "default" || name == "none") return Scaling::none;
  if (name == "linear") return Scaling::linear;
  if (name == "dynamic") return Scaling::dynamic;
  if (name == "llama3") return Scaling::llama3;
  if (name == "yarn") return Scaling::yarn;
  if (name == "longrope") return Scaling::longrope;
  throw Error(
      "rope scaling '{}' is unknown; known: none (default), linear, dynamic, llama3, yarn, "
      "longrope",
      name);
}

void check(const RopeSpec& spec) {
  if (spec.rotary_dim <= 0 || spec.rotary_dim % 2 != 0)
    throw Error("rope: the number of rotated dims must be positive and even, got {}",
                spec.rotary_dim);
  positive(spec.theta, "rope_theta");
  if (spec.scaling != Scaling::none) check_scaling(spec);
  check_result(spec);
}

std::vector<double> inverse_frequencies(const RopeSpec& spec, int64_t length) {
  const auto dim = static_cast<double>(spec.rotary_dim);
  double theta = spec.theta;
  if (spec.scaling == Scaling::dynamic) {
    const double stretch = std::max(static_cast<double>(length), spec.original_max);
    theta *=
        std::pow(spec.factor * stretch / spec.original_max - (spec.factor - 1), dim / (dim - 2));
  }
  std::vector<double> w(static_cast<size_t>(spec.rotary_dim / 2));
  for (size_t i = 0; i < w.size(); ++i) w[i] = std::pow(theta, -2 * static_cast<double>(i) / dim);
  switch (spec.scaling) {
    case Scaling::linear:
      for (double& x : w) x /= spec.factor;
      break;
    case Scaling::llama3:
      scale_llama3(spec, w);
      break;
    case Scaling::yarn:
      if (spec.factor > 1) scale_yarn(spec, w);
      break;
    case Scaling::longrope: {
      const auto& factors =
          static_cast<double>(length) > spec.original_max ? spec.long_factor : spec.short_factor;
      for (size_t i = 0; i < w.size(); ++i) w[i] /= factors[i];
      break;
    }
    default:
      break;
  }
  return w;
}

double magnitude(const RopeSpec& spec, int64_t length) {
  if (spec.scaling != Scaling::yarn && spec.scaling != Scaling::longrope) return 1;
  if (spec.attention_factor != 0) return spec.attention_factor;
  if (spec.scaling == Scaling::longrope && spec.short_mscale != 0)
    return static_cast<double>(length) > spec.original_max ? spec.long_mscale : spec.short_mscale;
  if (spec.scaling == Scaling::longrope)
    return spec.factor <= 1 ? 1
                            : std::sqrt(1 + std::log(spec.factor) / std::log(spec.original_max));
  if (spec.mscale != 0 && spec.mscale_all_dim != 0)
    return yarn_magnitude(spec.factor, spec.mscale) /
           yarn_magnitude(spec.factor, spec.mscale_all_dim);
  return yarn_magnitude(spec.factor, 1);
}

void fill_tables(const RopeSpec& spec, int64_t positions, int64_t length, float* cos_SP,
                 float* sin_SP) {
  const auto w = inverse_frequencies(spec, length);
  const double scale = magnitude(spec, length);
  for (int64_t s = 0; s < positions; ++s) {
    for (size_t i = 0; i < w.size(); ++i) {
      const float angle = static_cast<float>(s) * static_cast<float>(w[i]);
      const size_t at = static_cast<size_t>(s) * w.size() + i;
      cos_SP[at] = static_cast<float>(std::cos(static_cast<double>(angle)) * scale);
      sin_SP[at] = static_cast<float>(std::sin(static_cast<double>(angle)) * scale);
    }
  }
}

}  // namespace rhea::nn
