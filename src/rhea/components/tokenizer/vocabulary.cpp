#include "rhea/components/tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace rhea::tokenizer {

Vocabulary::Vocabulary(const JsonField& field) {
  ids_.reserve(field.object().size());
  std::vector<bool> used;
  for (const auto& [token, id_value] : field.object().items()) {
    const int32_t id = JsonField(id_value, field.where() + "[\"" + token + "\"]").id();
    const auto index = static_cast<size_t>(id);
    if (index >= tokens_.size()) {
      tokens_.resize(index + 1);
      used.resize(index + 1);
    }
    if (used[index])
      field.fail(
          fmt::format("id {} is given to both \"{}\" and \"{}\"", id, tokens_[index], token));
    used[index] = true;
    tokens_[index] = token;
    ids_.emplace(token, id);
  }
}

void Vocabulary::append(std::string token) {
  ids_[token] = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(std::move(token));
}

int32_t Vocabulary::require(const JsonField& field, std::string_view token) const {
  const int32_t id = find(token);
  if (id < 0) field.fail(fmt::format("\"{}\" is not in the vocabulary", token));
  return id;
}

}  // namespace rhea::tokenizer
