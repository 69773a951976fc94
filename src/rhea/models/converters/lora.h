// LoRA: trains low-rank adapters beside frozen linear layers.
#pragma once
#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "rhea/config/model_converter.h"

namespace rhea {

// Options of LoRAConverter.
struct LoRAOptions {
  int64_t rank = 8;   // rows of A, columns of B
  double alpha = 16;  // over rank: the factor of the product
  // Last segments of FQNs ("wq", "q_proj"), ends of several ("attention.wo"), or globs over whole
  // FQNs ("layers.[0-3].*"). Empty: every linear layer, head and router gates too.
  std::vector<std::string> target_modules;
  double dropout = 0;  // only 0: another number is an Error
};

// y = W x + (alpha/rank) * B (A x). Everything but A and B is frozen, a bias that balances experts
// too, and a model behaves as before until they have been trained. Names that match nothing are a
// warning, and so is a rank above one size of a layer; an Error where no name matches, for a rank
// that is not positive or above both sizes of a layer, for alpha that is not positive and finite,
// and for dropout.
struct LoRAConverter : ModelConverter, LoRAOptions {
  LoRAConverter() = default;
  // A template, so that a compiler need not choose between this and a copy of {}.
  template <std::same_as<LoRAOptions> Options = LoRAOptions>
  explicit LoRAConverter(Options options) : LoRAOptions(std::move(options)) {}

  std::string name() const override { return "LoRAConverter"; }
  void convert(Slot<Config>& model, std::vector<ConversionNote>& notes) const override;
  void fields(Visitor& v) override;
};

}  // namespace rhea
