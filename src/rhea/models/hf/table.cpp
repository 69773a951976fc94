#include "rhea/models/hf/table.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace rhea::models::hf {
namespace {

const std::vector<std::span<const Row>>& groups() {
  static const std::vector<std::span<const Row>> kGroups = {
      llama_rows(),    llama_like_rows(), qwen_rows(),   gemma_rows(),    olmo_rows(),
      glm_rows(),      phi3_rows(),       cohere_rows(), mixtral_rows(),  qwen_moe_rows(),
      deepseek_rows(), gpt_oss_rows(),    gpt2_rows(),   gpt_neox_rows(), gptj_rows(),
      opt_rows(),      bloom_rows(),      falcon_rows(), phi_rows(),      stablelm_rows(),
  };
  return kGroups;
}

}  // namespace

const Row& find_row(std::string_view model_type) {
  for (const auto& group : groups()) {
    for (const Row& row : group) {
      if (row.model_type == model_type) return row;
    }
  }
  throw Error("model_type '{}' is not supported; supported: {}", model_type,
              fmt::join(model_types(), ", "));
}

std::vector<std::string_view> model_types() {
  std::vector<std::string_view> names;
  for (const auto& group : groups()) {
    for (const Row& row : group) names.push_back(row.model_type);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace rhea::models::hf
