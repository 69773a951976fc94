// The models of tokenizer.json that look words up: WordLevel, and WordPiece, which takes words
// apart greedily.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/components/tokenizer/json_fields.h"
#include "rhea/components/tokenizer/vocabulary.h"

namespace rhea::tokenizer {

class WordLevelModel {
 public:
  // From the "model" field: vocab, unk_token. Throws Error naming the field.
  explicit WordLevelModel(const JsonField& field);
  // Appends the id of one word, or of the unknown token. Throws Error where there is neither.
  void encode(std::string_view word, std::vector<int32_t>& ids) const;
  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::string description() const { return "WordLevel"; }

 private:
  Vocabulary vocabulary_;
  std::string unknown_;
  int32_t unknown_id_ = -1;
};

class WordPieceModel {
 public:
  // From the "model" field: vocab, unk_token, continuing_subword_prefix, max_input_chars_per_word.
  explicit WordPieceModel(const JsonField& field);
  // Appends the ids of the longest entries from front to back, those after the first with the
  // prefix; the unknown token for a word that is too long or has a part without entry. Throws Error
  // where the unknown token is needed and not in the vocabulary.
  void encode(std::string_view word, std::string& spelling, std::vector<int32_t>& ids) const;
  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::string description() const { return "WordPiece"; }

 private:
  Vocabulary vocabulary_;
  std::string unknown_;
  int32_t unknown_id_ = -1;
  std::string continuing_prefix_;
  size_t longest_word_ = 0;   // characters
  size_t longest_entry_ = 0;  // bytes
};

}  // namespace rhea::tokenizer
