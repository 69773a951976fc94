// A `tokenizer.model` of SentencePiece, run by its library.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/components/tokenizer/vocabulary.h"

namespace rhea::tokenizer {

// Who numbers the pieces.
enum class PieceIds {
  file,
  // XLM-RoBERTa's program: <s> <pad> </s> <unk>, the pieces from the file's fourth on, <mask>.
  fairseq,
};

class SentencePieceModel {
 public:
  // `bytes` is the file's content, `name` stands in messages. Throws Error where the library
  // refuses it, or the file's first pieces are not those that `ids` renames.
  SentencePieceModel(std::string_view bytes, const std::string& name,
                     PieceIds ids = PieceIds::file);
  ~SentencePieceModel();
  SentencePieceModel(SentencePieceModel&&) noexcept;
  SentencePieceModel& operator=(SentencePieceModel&&) noexcept;

  // Appends the ids of a text, with the normalization that the file asks for.
  void encode(std::string_view text, std::vector<int32_t>& ids) const;
  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::string description() const { return "SentencePiece"; }

  // Ids as `vocabulary` has them. Entries that only stand for themselves (`<s>`), and the one for
  // the unknown.
  std::vector<int32_t> special_ids() const;
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;

 private:
  // From the file's id.
  int32_t id_of(int piece) const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
  PieceIds ids_;
  Vocabulary vocabulary_;
};

}  // namespace rhea::tokenizer
