// Cutting text at added tokens.
#include "rhea/components/tokenizer/added_tokens.h"

#include <algorithm>

#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {
namespace {

bool inside_word(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && is_word(decode_code_point_before(text, begin).value)) return true;
  return end < text.size() && is_word(decode_code_point(text, end).value);
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  if (token.content.empty()) return;
  const auto [entry, inserted] = by_content_.emplace(token.content, tokens_.size());
  if (!inserted) {
    by_id_.erase(tokens_[entry->second].id);
    by_id_[token.id] = entry->second;
    tokens_[entry->second] = std::move(token);
    return;
  }
  by_id_[token.id] = tokens_.size();
  tokens_.push_back(std::move(token));
}

void AddedTokens::finish(const Normalizer& normalizer) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    AddedToken& token = tokens_[i];
    token.text = token.content;
    if (token.normalized) normalizer.apply(token.text);
    if (token.text.empty()) continue;
    Table& table = token.normalized ? normalized_ : raw_;
    table[static_cast<unsigned char>(token.text.front())].push_back({token.text, i});
    has_normalized_ = has_normalized_ || token.normalized;
  }
  for (Table* table : {&raw_, &normalized_})
    for (auto& bucket : *table)
      std::stable_sort(bucket.begin(), bucket.end(), [&](const Pattern& a, const Pattern& b) {
        if (a.text.size() != b.text.size()) return a.text.size() > b.text.size();
        return tokens_[a.token].special && !tokens_[b.token].special;
      });
}

void AddedTokens::split(std::string_view text, bool normalized, SpecialTokensInText specials,
                        std::vector<Part>& parts) const {
  const Table& table = normalized ? normalized_ : raw_;
  size_t text_begin = 0;  // of the text part that is not yet written
  if (!normalized || has_normalized_) {
    size_t at = 0;
    while (at < text.size()) {
      const auto& bucket = table[static_cast<unsigned char>(text[at])];
      const auto match = std::find_if(bucket.begin(), bucket.end(), [&](const Pattern& pattern) {
        return text.compare(at, pattern.text.size(), pattern.text) == 0;
      });
      if (match == bucket.end()) {
        ++at;
        continue;
      }
      const AddedToken& token = tokens_[match->token];
      size_t begin = at;
      size_t end = at + match->text.size();
      at = end;
      if (token.special && specials == SpecialTokensInText::plain) continue;
      if (token.single_word && inside_word(text, begin, end)) continue;
      while (token.lstrip && begin > text_begin) {
        const CodePoint c = decode_code_point_before(text, begin);
        if (!is_white_space(c.value)) break;
        begin -= c.length;
      }
      while (token.rstrip && end < text.size()) {
        const CodePoint c = decode_code_point(text, end);
        if (!is_white_space(c.value)) break;
        end += c.length;
      }
      // The next search begins behind the token itself, not behind the white space that `rstrip`
      // took in: a token of white space in there counts again, unless it has `lstrip`, which ends
      // where the token before ends. So the reference has it.
      if (token.lstrip) begin = std::max(begin, text_begin);
      if (begin >= end) continue;
      if (text_begin < begin) parts.push_back({text_begin, begin, -1});
      parts.push_back({begin, end, token.id});
      text_begin = end;
    }
  }
  if (text_begin < text.size()) parts.push_back({text_begin, text.size(), -1});
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

}  // namespace rhea::tokenizer
