// The table of published architectures: what a model_type's config.json means.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "rhea/models/hf/fields.h"
#include "rhea/nn/decoder.h"

namespace rhea::models::hf {

struct Row {
  std::string_view model_type;
  std::vector<std::string_view> architectures;  // that config.json may name; it may name none
  // Values that Transformers takes for absent fields, as JSON. A field that is in none of the two
  // and that the builder needs is an error.
  std::string_view defaults;
  // Reads the fields it uses and makes the decoder under the names of published files.
  nn::Decoder::Config (*build)(Fields& fields);
  // Where the row's files call a field of Llama's otherwise. `hf_overrides` and the builders read
  // the same list.
  std::vector<Spelling> spellings = {};

  // Whether the model's embedding gives the row of pad_token_id no gradient.
  bool pads = true;

  // The row's first name of Llama's field.
  std::string_view spelling(std::string_view name) const { return names_of(spellings, name)[0]; }
};

// Throws Error listing the model types there are.
const Row& find_row(std::string_view model_type);
std::vector<std::string_view> model_types();

// Groups of related rows, one file each; a new group is named here and in table.cpp.
std::span<const Row> llama_rows();
std::span<const Row> llama_like_rows();
std::span<const Row> qwen_rows();
std::span<const Row> gemma_rows();
std::span<const Row> olmo_rows();
std::span<const Row> glm_rows();
std::span<const Row> phi3_rows();
std::span<const Row> cohere_rows();
std::span<const Row> mixtral_rows();
std::span<const Row> qwen_moe_rows();
std::span<const Row> deepseek_rows();
std::span<const Row> gpt_oss_rows();
std::span<const Row> gpt2_rows();
std::span<const Row> gpt_neox_rows();
std::span<const Row> gptj_rows();
std::span<const Row> opt_rows();
std::span<const Row> bloom_rows();
std::span<const Row> falcon_rows();
std::span<const Row> phi_rows();
std::span<const Row> stablelm_rows();

}  // namespace rhea::models::hf
