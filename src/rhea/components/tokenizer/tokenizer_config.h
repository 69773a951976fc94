// tokenizer_config.json: which tokens are bos, eos and pad, whether they are added, and the chat
// template.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/components/tokenizer/added_tokens.h"

namespace rhea::tokenizer {

struct TokenizerConfig {
  std::optional<std::string> bos_token, eos_token, pad_token;
  std::optional<bool> add_bos_token, add_eos_token;
  std::optional<bool> add_prefix_space;
  std::optional<bool> do_lower_case;     // of BERT's class
  std::vector<AddedToken> added_tokens;  // added_tokens_decoder, by id
  std::string chat_template;
  std::string tokenizer_class;
};

// Throws Error with `name` and the field at fault.
TokenizerConfig parse_tokenizer_config(std::string_view text, const std::string& name);
// One entry of "added_tokens" or "added_tokens_decoder".
AddedToken parse_added_token(const JsonField& field, int32_t id);

}  // namespace rhea::tokenizer
