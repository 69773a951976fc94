// tiktoken files: byte strings by rank, in base64. They become what a tokenizer.json would say.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace rhea::tokenizer {

// Whether `text` is one of the two forms: lines "base64 rank", or the JSON object with pat_str,
// special_tokens and bpe_ranks.
bool is_tiktoken(std::string_view text);

// `name` is the file's name: it tells how text is cut (r50k, p50k, gpt2: GPT-2; o200k; qwen; any
// other: cl100k and Llama 3) where the file does not, and stands in messages. Throws Error naming
// the line or field at fault.
nlohmann::json tiktoken_to_json(std::string_view text, const std::string& name);

}  // namespace rhea::tokenizer
