// The list of checks.
#include "rhea/ops/contract/contract.h"

#include "rhea/ops/contract/checks.h"

namespace rhea::ops {

Findings::Place::Place(Findings& findings, std::string text) : findings_(findings) {
  findings_.places_.push_back(std::move(text));
}

std::string Findings::placed(std::string text) const {
  return places_.empty() ? text : fmt::format("{}: {}", fmt::join(places_, ": "), text);
}

std::span<const ContractCheck> contract_checks() {
  static constexpr ContractCheck kChecks[] = {
      {"RowIsComplete", check_complete},
      {"SampleTypesShardAndCost", check_sample_types},
      {"DecompositionEqualsReference", check_definitions},
      {"EveryKernelAgrees", check_kernels},
      {"TilesOfEveryInstructionSetAgree", check_tiles},
      {"NonFiniteOperandsSpreadAsDefined", check_nonfinite},
      {"GradientEqualsDifferences", check_gradient},
      {"HalvesAlongAFactorMakeTheWhole", check_halves},
      {"CostIsThatOfTheSample", check_cost},
      {"TextReadsBack", check_text},
      {"DamagedTextGivesErrorsOnly", check_damaged_text},
  };
  return kChecks;
}

}  // namespace rhea::ops
