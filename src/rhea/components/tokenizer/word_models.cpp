#include "rhea/components/tokenizer/word_models.h"

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {
namespace {

void push_unknown(int32_t id, const std::string& token, std::string_view word,
                  std::vector<int32_t>& ids) {
  if (id < 0)
    throw Error("no entry for \"{}\", and the unknown token \"{}\" is not in the vocabulary", word,
                token);
  ids.push_back(id);
}

}  // namespace

WordLevelModel::WordLevelModel(const JsonField& field)
    : vocabulary_(field["vocab"]), unknown_(field["unk_token"].string_or("<unk>")) {
  unknown_id_ = vocabulary_.find(unknown_);
}

void WordLevelModel::encode(std::string_view word, std::vector<int32_t>& ids) const {
  if (const int32_t id = vocabulary_.find(word); id >= 0) {
    ids.push_back(id);
  } else {
    push_unknown(unknown_id_, unknown_, word, ids);
  }
}

WordPieceModel::WordPieceModel(const JsonField& field)
    : vocabulary_(field["vocab"]),
      unknown_(field["unk_token"].string_or("[UNK]")),
      continuing_prefix_(field["continuing_subword_prefix"].string_or("##")) {
  unknown_id_ = vocabulary_.find(unknown_);
  const JsonField limit = field["max_input_chars_per_word"];
  longest_word_ = limit.is_null() ? 100 : static_cast<size_t>(limit.id());
  vocabulary_.for_each([&](const std::string& token, int32_t) {
    longest_entry_ = std::max(longest_entry_, token.size());
  });
}

void WordPieceModel::encode(std::string_view word, std::string& spelling,
                            std::vector<int32_t>& ids) const {
  size_t num_characters = 0;
  for (const char byte : word)
    num_characters += (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U ? 1 : 0;
  if (num_characters > longest_word_) return push_unknown(unknown_id_, unknown_, word, ids);
  const size_t first = ids.size();
  for (size_t begin = 0; begin < word.size();) {
    const size_t prefix = begin > 0 ? continuing_prefix_.size() : 0;
    spelling.assign(begin > 0 ? continuing_prefix_ : "");
    // No entry is longer than the longest; from there on back, character by character.
    size_t end = word.size();
    spelling += word.substr(begin);
    while (spelling.size() > prefix &&
           (spelling.size() > longest_entry_ || vocabulary_.find(spelling) < 0)) {
      end -= decode_code_point_before(word, end).length;
      spelling.resize(prefix + end - begin);
    }
    if (spelling.size() == prefix) {
      ids.resize(first);
      return push_unknown(unknown_id_, unknown_, word, ids);
    }
    ids.push_back(vocabulary_.find(spelling));
    begin = end;
  }
}

}  // namespace rhea::tokenizer
