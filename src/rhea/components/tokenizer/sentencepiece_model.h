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

class SentencePieceModel {
 public:
  // `bytes` is the file's content, `name` stands in messages. Throws Error where the library
  // refuses it.
  SentencePieceModel(std::string_view bytes, const std::string& name);
  ~SentencePieceModel();
  SentencePieceModel(SentencePieceModel&&) noexcept;
  SentencePieceModel& operator=(SentencePieceModel&&) noexcept;

  // Appends the ids of a text, with the normalization that the file asks for.
  void encode(std::string_view text, std::vector<int32_t>& ids) const;
  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::string description() const { return "SentencePiece"; }

  // Entries that only stand for themselves (`<s>`), and the one for the unknown.
  std::vector<int32_t> special_ids() const;
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  Vocabulary vocabulary_;
};

}  // namespace rhea::tokenizer
