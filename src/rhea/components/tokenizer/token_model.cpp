#include "rhea/components/tokenizer/token_model.h"

#include <nlohmann/json.hpp>

namespace rhea::tokenizer {
namespace {

// Files of older versions leave the type out; the fields tell.
std::string model_type(const JsonField& field) {
  if (!field["type"].is_null()) return field["type"].string();
  if (!field["merges"].is_null()) return "BPE";
  if (field["vocab"].value().is_array()) return "Unigram";
  return field["continuing_subword_prefix"].is_null() ? "WordLevel" : "WordPiece";
}

}  // namespace

bool TokenModel::can_read_bytes(const JsonField& field) {
  return model_type(field) == "BPE" && BpeModel::can_read_bytes(field);
}

TokenModel::TokenModel(const JsonField& field, bool byte_level)
    : model_([&]() -> decltype(model_) {
        const std::string type = model_type(field);
        if (type == "BPE") return BpeModel(field, byte_level);
        if (type == "Unigram") return UnigramModel(field);
        if (type == "WordPiece") return WordPieceModel(field);
        if (type == "WordLevel") return WordLevelModel(field);
        field["type"].fail("model type \"" + type +
                           "\" is not one of BPE, Unigram, WordPiece, WordLevel");
      }()) {}

size_t TokenModel::part_end(std::string_view piece, size_t at) const {
  const auto* bpe = std::get_if<BpeModel>(&model_);
  return bpe == nullptr ? piece.size() : bpe->part_end(piece, at);
}

void TokenModel::encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (const auto* bpe = std::get_if<BpeModel>(&model_)) {
    bpe->encode(piece, scratch.bpe, ids);
  } else if (const auto* unigram = std::get_if<UnigramModel>(&model_)) {
    unigram->encode(piece, scratch.unigram, ids);
  } else if (const auto* word_piece = std::get_if<WordPieceModel>(&model_)) {
    word_piece->encode(piece, scratch.spelling, ids);
  } else if (const auto* word_level = std::get_if<WordLevelModel>(&model_)) {
    word_level->encode(piece, ids);
  } else {
    std::get<SentencePieceModel>(model_).encode(piece, ids);
  }
}

const Vocabulary& TokenModel::vocabulary() const {
  return std::visit([](const auto& model) -> const Vocabulary& { return model.vocabulary(); },
                    model_);
}

std::string TokenModel::description() const {
  return std::visit([](const auto& model) { return model.description(); }, model_);
}

int TokenModel::num_missing_bytes() const {
  const auto* bpe = std::get_if<BpeModel>(&model_);
  return bpe == nullptr ? 0 : bpe->num_missing_bytes();
}

}  // namespace rhea::tokenizer
