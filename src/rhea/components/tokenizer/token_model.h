// The four models of tokenizer.json, and that of a tokenizer.model, behind one call.
#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rhea/components/tokenizer/bpe_model.h"
#include "rhea/components/tokenizer/sentencepiece_model.h"
#include "rhea/components/tokenizer/unigram_model.h"
#include "rhea/components/tokenizer/word_models.h"

namespace rhea::tokenizer {

class TokenModel {
 public:
  // Buffers of one thread.
  struct Scratch {
    BpeModel::Scratch bpe;
    UnigramModel::Scratch unigram;
    std::string spelling;
  };

  // Whether a model of this "model" field can read plain bytes in place of the byte alphabet.
  static bool can_read_bytes(const JsonField& field);
  // From the "model" field; `byte_level`: pieces are plain bytes (see BpeModel). Throws Error
  // naming the field at fault.
  TokenModel(const JsonField& field, bool byte_level);
  explicit TokenModel(SentencePieceModel model) : model_(std::move(model)) {}

  // The end of the part of `piece` that begins at `at` and can be encoded by itself (see BpeModel).
  size_t part_end(std::string_view piece, size_t at) const;
  // Appends the ids of one piece or part, which is not empty.
  void encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;
  const Vocabulary& vocabulary() const;
  std::string description() const;
  int num_missing_bytes() const;

 private:
  std::variant<BpeModel, UnigramModel, WordPieceModel, WordLevelModel, SentencePieceModel> model_;
};

}  // namespace rhea::tokenizer
