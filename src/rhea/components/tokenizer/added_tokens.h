// Added tokens: whole strings that become one id before anything else happens to the text.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rhea/components/tokenizer/normalizer.h"
#include "rhea/components/tokenizer/tokenizer.h"

namespace rhea::tokenizer {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;
  bool single_word = false;  // only between characters that are not part of a word
  bool lstrip = false;       // takes in white space before it
  bool rstrip = false;       // and after it
  bool normalized = false;   // matched in normalized text
  std::string text;          // what is matched and decoded to: the content, normalized if so
};

class AddedTokens {
 public:
  // Part of a text: an added token, or text between them.
  struct Part {
    size_t begin = 0;
    size_t end = 0;
    int32_t id = -1;  // -1: text
  };

  // A token of the same content replaces the older one.
  void add(AddedToken token);
  // Builds the tables; no add() after it.
  void finish(const Normalizer& normalizer);

  // Cuts `text` at the tokens that are matched in raw text (normalized = false) or in normalized
  // text. Leftmost first, longest first.
  void split(std::string_view text, bool normalized, SpecialTokensInText specials,
             std::vector<Part>& parts) const;

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  const AddedToken* find(int32_t id) const;
  const AddedToken* find(std::string_view content) const;

 private:
  struct Pattern {
    std::string text;
    size_t token = 0;
  };
  // Patterns by first byte, longest first, of equal ones special tokens first.
  using Table = std::array<std::vector<Pattern>, 256>;

  std::vector<AddedToken> tokens_;
  std::unordered_map<int32_t, size_t> by_id_;
  std::unordered_map<std::string, size_t> by_content_;
  Table raw_, normalized_;
  bool has_normalized_ = false;
};

}  // namespace rhea::tokenizer
