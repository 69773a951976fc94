// Freezing: parameters that keep their values.
#pragma once
#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "rhea/config/model_converter.h"

namespace rhea {

// Options of FreezeConverter.
struct FreezeOptions {
  // Globs over FQNs of parameters as checkpoints have them ("layers.[0-3].*",
  // "*.attention.*.weight").
  std::vector<std::string> fqns;
  // Globs of what is trained though one of `fqns` matches it.
  std::vector<std::string> except;
};

// What it matches gets no gradient and no optimizer state, is left out of the gradient's norm and
// is stored as before; so is a bias that balances experts, which the load of a step would move. A
// glob that matches nothing is a warning, a converter that freezes nothing an error.
struct FreezeConverter : ModelConverter, FreezeOptions {
  FreezeConverter() = default;
  // A template, so that a compiler need not choose between this and a copy of {}.
  template <std::same_as<FreezeOptions> Options = FreezeOptions>
  explicit FreezeConverter(Options options) : FreezeOptions(std::move(options)) {}

  std::string name() const override { return "FreezeConverter"; }
  void convert(Slot<Config>& model, std::vector<ConversionNote>& notes) const override;
  void fields(Visitor& v) override;
};

}  // namespace rhea
