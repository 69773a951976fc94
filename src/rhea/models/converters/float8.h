// Linear layers in 8-bit floating point.
#pragma once
#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "rhea/config/model_converter.h"

namespace rhea {

// Options of Float8LinearConverter.
struct Float8Options {
  std::string recipe_name = "rowwise";  // rowwise, rowwise_with_gw_hp, tensorwise
  // Layers whose FQN contains one of these stay as they are; auto_filter_small_kn: those that are
  // too small to gain on hardware that has the format.
  std::vector<std::string> filter_fqns;
  bool emulate = false;  // no choice on a CPU, where nothing but emulation is
};

// Products of linear layers and of their gradients in e4m3 and e5m2 (ops/float8/float8.h).
// Parameters, optimizer state and everything else keep their precision. Layers with a dimension
// that is no multiple of 16 are left. A filter that matches nothing is a warning, a converter that
// converts nothing an error.
struct Float8LinearConverter : ModelConverter, Float8Options {
  Float8LinearConverter() = default;
  // A template, so that a compiler need not choose between this and a copy of {}.
  template <std::same_as<Float8Options> Options = Float8Options>
  explicit Float8LinearConverter(Options options) : Float8Options(std::move(options)) {}

  std::string name() const override { return "Float8LinearConverter"; }
  bool quantizes() const override { return true; }
  void convert(Slot<Config>& model, std::vector<ConversionNote>& notes) const override;
  void fields(Visitor& v) override;
};

}  // namespace rhea
