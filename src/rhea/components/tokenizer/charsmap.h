// The normalizer Precompiled: SentencePiece's table of replacements, as tokenizer.json carries it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/components/tokenizer/json_fields.h"

namespace rhea::tokenizer {

class Charsmap {
 public:
  // From the field "precompiled_charsmap": base64 of the bytes of a double-array trie (its length,
  // then its units) and of the replacements, each ended by a zero byte.
  explicit Charsmap(const JsonField& field);
  // Replaces user-visible characters of less than 6 bytes as a whole, others code point by code
  // point: what the published vocabularies were trained with.
  void apply(std::string& text) const;

 private:
  // Replacement of the shortest prefix of `key` that the table has; null where it has none.
  const char* find(std::string_view key) const;
  void append(std::string_view character, std::string& out) const;

  std::vector<uint32_t> trie_;
  std::string replacements_;
};

}  // namespace rhea::tokenizer
