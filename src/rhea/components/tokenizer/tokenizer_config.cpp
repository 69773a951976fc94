// Reading tokenizer_config.json.
#include "rhea/components/tokenizer/tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"

namespace rhea::tokenizer {
namespace {

// A special token is written as its text or as {"content": text, ...}.
std::optional<std::string> token_field(const JsonField& field) {
  if (field.is_null()) return std::nullopt;
  return field.value().is_object() ? field["content"].string() : field.string();
}

std::optional<bool> optional_boolean(const JsonField& field) {
  if (field.is_null()) return std::nullopt;
  return field.boolean();
}

// One template, or a list of named ones of which "default" counts.
std::string chat_template_field(const JsonField& field) {
  if (!field.value().is_array()) return field.string_or("");
  for (size_t i = 0; i < field.size(); ++i)
    if (field.item(i)["name"].string() == "default") return field.item(i)["template"].string();
  return {};
}

}  // namespace

AddedToken parse_added_token(const JsonField& field, int32_t id) {
  AddedToken token;
  token.id = id;
  token.content = field["content"].string();
  token.special = field["special"].boolean_or(false);
  token.single_word = field["single_word"].boolean_or(false);
  token.lstrip = field["lstrip"].boolean_or(false);
  token.rstrip = field["rstrip"].boolean_or(false);
  token.normalized = field["normalized"].boolean_or(!token.special);
  return token;
}

TokenizerConfig parse_tokenizer_config(std::string_view text, const std::string& name) {
  const Json json = parse_json(text, name);
  const JsonField root(json, name + ": ");
  root.object();
  TokenizerConfig config;
  config.bos_token = token_field(root["bos_token"]);
  config.eos_token = token_field(root["eos_token"]);
  config.pad_token = token_field(root["pad_token"]);
  // Nothing here asks for these; a file that spells them wrong is wrong all the same.
  for (const char* role : {"unk_token", "sep_token", "cls_token", "mask_token"})
    token_field(root[role]);
  config.add_bos_token = optional_boolean(root["add_bos_token"]);
  config.add_eos_token = optional_boolean(root["add_eos_token"]);
  config.do_lower_case = optional_boolean(root["do_lower_case"]);
  config.add_prefix_space = optional_boolean(root["add_prefix_space"]);
  config.chat_template = chat_template_field(root["chat_template"]);
  config.tokenizer_class = root["tokenizer_class"].string_or("");
  const JsonField added = root["added_tokens_decoder"];
  if (!added.is_null()) {
    for (const auto& [key, value] : added.object().items()) {
      const JsonField entry(value, added.where() + "." + key);
      int32_t id = -1;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc() || end != key.data() + key.size() || id < 0 || id > (1 << 22))
        entry.fail("the name of an entry is a token id in [0, 2^22]");
      config.added_tokens.push_back(parse_added_token(entry, id));
    }
    std::sort(config.added_tokens.begin(), config.added_tokens.end(),
              [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  }
  return config;
}

}  // namespace rhea::tokenizer
