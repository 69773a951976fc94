// Byte-pair encoding of one piece of text.
#include "rhea/components/tokenizer/bpe_model.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {

bool BpeModel::can_read_bytes(const JsonField& field) {
  return field["continuing_subword_prefix"].string_or("").empty() &&
         field["end_of_word_suffix"].string_or("").empty() &&
         !field["byte_fallback"].boolean_or(false);
}

BpeModel::BpeModel(const JsonField& field, bool byte_level)
    : byte_level_(byte_level), vocabulary_(field["vocab"]) {
  if (!field["dropout"].is_null() && field["dropout"].value() != 0)
    field["dropout"].fail(
        "merges dropped at random (BPE dropout) give other tokens each time; set it to null");
  byte_fallback_ = field["byte_fallback"].boolean_or(false);
  fuse_unknown_ = field["fuse_unk"].boolean_or(false);
  ignore_merges_ = field["ignore_merges"].boolean_or(false);
  continuing_prefix_ = field["continuing_subword_prefix"].string_or("");
  word_suffix_ = field["end_of_word_suffix"].string_or("");
  const std::string unknown = field["unk_token"].string_or("");
  if (!unknown.empty()) unknown_id_ = vocabulary_.require(field["unk_token"], unknown);
  add_merges(field["merges"]);
  find_byte_ids();
  if (!byte_level_) find_character_ids();
  has_parts_ =
      !byte_level_ && !ignore_merges_ && continuing_prefix_.empty() && word_suffix_.empty();
  if (has_parts_) find_joined_characters();
  merge_parts_ = {};
  if (ignore_merges_ && byte_level_)
    vocabulary_.for_each([&](const std::string& token, int32_t id) {
      if (auto bytes = alphabet_to_bytes(token)) whole_pieces_.emplace(std::move(*bytes), id);
    });
}

void BpeModel::add_merges(const JsonField& field) {
  num_merges_ = field.array().size();
  merges_.reserve(num_merges_);
  for (size_t rank = 0; rank < num_merges_; ++rank) {
    const Json& entry = field.value()[rank];
    if (entry.is_string()) {
      const auto& text = entry.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
        field.item(rank).fail("\"" + text + "\" is not two parts with one space between them");
      add_merge(text.substr(0, space), text.substr(space + 1), rank, field);
    } else if (entry.is_array() && entry.size() == 2) {
      add_merge(field.item(rank).item(0).string(), field.item(rank).item(1).string(), rank, field);
    } else {
      field.item(rank).fail("expected \"left right\" or [\"left\", \"right\"]");
    }
  }
}

void BpeModel::add_merge(const std::string& left, const std::string& right, size_t rank,
                         const JsonField& field) {
  const auto id_of = [&](const std::string& token) {
    const int32_t id = vocabulary_.find(token);
    if (id < 0)
      field.item(rank).fail(fmt::format(
          "merge of \"{}\" and \"{}\": \"{}\" is not in the vocabulary", left, right, token));
    return id;
  };
  // Inside a word the right part carries the prefix; the merged entry does not carry it twice.
  if (right.size() < continuing_prefix_.size())
    field.item(rank).fail("the right part \"" + right + "\" is shorter than the prefix \"" +
                          continuing_prefix_ + "\" of parts inside a word");
  const int32_t left_id = id_of(left);
  const int32_t right_id = id_of(right);
  merge_parts_.emplace_back(left_id, right_id);
  merges_.insert(left_id, right_id,
                 {narrow<int32_t>(rank), id_of(left + right.substr(continuing_prefix_.size()))});
}

void BpeModel::find_byte_ids() {
  for (int byte = 0; byte < 256; ++byte) {
    std::string name;
    if (byte_level_) {
      append_utf8(name, byte_to_char(static_cast<uint8_t>(byte)));
    } else {
      name = fmt::format("<0x{:02X}>", byte);
    }
    byte_ids_[byte] = vocabulary_.find(name);
    if (byte_ids_[byte] < 0 && byte_level_ && unknown_id_ < 0) ++num_missing_bytes_;
  }
}

void BpeModel::find_character_ids() {
  vocabulary_.for_each([&](const std::string& token, int32_t id) {
    if (token.empty()) return;
    const CodePoint c = decode_code_point(token, 0);
    if (c.length != token.size()) return;
    if (c.value >= character_ids_.size()) character_ids_.resize(c.value + 1, -1);
    character_ids_[c.value] = id;
  });
}

void BpeModel::find_joined_characters() {
  joined_characters_.reserve(merge_parts_.size());
  for (const auto& [left, right] : merge_parts_) {
    const std::string& before = vocabulary_.token(left);
    const std::string& behind = vocabulary_.token(right);
    if (before.empty() || behind.empty()) continue;
    joined_characters_.insert(
        static_cast<int32_t>(decode_code_point_before(before, before.size()).value),
        static_cast<int32_t>(decode_code_point(behind, 0).value), {0, 0});
  }
}

size_t BpeModel::part_end(std::string_view piece, size_t at) const {
  if (!has_parts_) return piece.size();
  const auto is_known = [&](char32_t c) {
    return c < character_ids_.size() && character_ids_[c] >= 0;
  };
  CodePoint before = decode_code_point(piece, at);
  for (at += before.length; at < piece.size();) {
    const CodePoint behind = decode_code_point(piece, at);
    // Unknown characters wait for known ones, or become bytes that have merges of their own.
    if (is_known(before.value) && is_known(behind.value) &&
        joined_characters_
                .find(static_cast<int32_t>(before.value), static_cast<int32_t>(behind.value))
                .rank < 0)
      return at;
    at += behind.length;
    before = behind;
  }
  return at;
}

int32_t BpeModel::find_character(std::string_view piece, size_t begin, size_t end,
                                 Scratch& scratch) const {
  const bool prefixed = begin > 0 && !continuing_prefix_.empty();
  const bool suffixed = end == piece.size() && !word_suffix_.empty();
  if (!prefixed && !suffixed) {
    const char32_t c = decode_code_point(piece, begin).value;
    return c < character_ids_.size() ? character_ids_[c] : -1;
  }
  scratch.spelling = prefixed ? continuing_prefix_ : "";
  scratch.spelling += piece.substr(begin, end - begin);
  if (suffixed) scratch.spelling += word_suffix_;
  return vocabulary_.find(scratch.spelling);
}

void BpeModel::byte_symbols(std::string_view piece, Scratch& scratch) const {
  bool after_unknown = false;
  for (const char byte : piece) {
    int32_t id = byte_ids_[static_cast<unsigned char>(byte)];
    const bool unknown = id < 0;
    if (unknown) id = fuse_unknown_ && after_unknown ? -1 : unknown_id_;
    if (id >= 0) scratch.symbols.push_back({id, -1, -1});
    after_unknown = unknown;
  }
}

void BpeModel::character_symbols(std::string_view piece, Scratch& scratch) const {
  const auto push = [&](int32_t id) { scratch.symbols.push_back({id, -1, -1}); };
  // An unknown token is held back until a known one comes; bytes of a fallback overtake it. So the
  // reference has it, and published vocabularies with both were trained on that.
  bool held_unknown = false;
  for (size_t at = 0; at < piece.size();) {
    const size_t end = at + decode_code_point(piece, at).length;
    const int32_t id = find_character(piece, at, end, scratch);
    if (id >= 0) {
      if (held_unknown) push(unknown_id_);
      held_unknown = false;
      push(id);
      at = end;
      continue;
    }
    const bool decorated =
        (at > 0 && !continuing_prefix_.empty()) || (end == piece.size() && !word_suffix_.empty());
    const std::string_view bytes =
        decorated ? std::string_view(scratch.spelling) : piece.substr(at, end - at);
    at = end;
    const auto has_byte = [&](char byte) {
      return byte_ids_[static_cast<unsigned char>(byte)] >= 0;
    };
    if (byte_fallback_ && std::all_of(bytes.begin(), bytes.end(), has_byte)) {
      for (const char byte : bytes) push(byte_ids_[static_cast<unsigned char>(byte)]);
    } else if (unknown_id_ >= 0) {
      if (held_unknown && !fuse_unknown_) push(unknown_id_);
      held_unknown = true;
    }
  }
  if (held_unknown) push(unknown_id_);
}

void BpeModel::merge(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  symbols.clear();
  heap.clear();
  if (byte_level_) {
    byte_symbols(piece, scratch);
  } else {
    character_symbols(piece, scratch);
  }
  const int32_t count = narrow<int32_t>(symbols.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols[static_cast<size_t>(i)].previous = i - 1;
    symbols[static_cast<size_t>(i)].next = i + 1 < count ? i + 1 : -1;
  }
  const auto at = [&](int32_t index) -> Scratch::Symbol& {
    return symbols[static_cast<size_t>(index)];
  };
  // Lowest rank first, then leftmost.
  const auto later = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  };
  const auto add_candidate = [&](int32_t left) {
    const int32_t right = left < 0 ? -1 : at(left).next;
    if (right < 0) return false;
    const PairTable::Value found = merges_.find(at(left).id, at(right).id);
    if (found.rank < 0) return false;
    heap.push_back({found.rank, left, at(left).id, at(right).id, found.id});
    return true;
  };
  const auto consider = [&](int32_t left) {
    if (add_candidate(left)) std::push_heap(heap.begin(), heap.end(), later);
  };
  for (int32_t i = 0; i + 1 < count; ++i) add_candidate(i);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const Scratch::Candidate best = heap.back();
    heap.pop_back();
    Scratch::Symbol& left = at(best.left);
    if (left.id != best.left_id || left.next < 0 || at(left.next).id != best.right_id) continue;
    Scratch::Symbol& right = at(left.next);
    left.id = best.id;
    left.next = right.next;
    if (left.next >= 0) at(left.next).previous = best.left;
    right.id = -1;
    consider(left.previous);
    consider(best.left);
  }
  for (int32_t i = count == 0 ? -1 : 0; i >= 0; i = at(i).next) ids.push_back(at(i).id);
}

void BpeModel::encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (ignore_merges_) {
    int32_t whole = -1;
    if (!byte_level_) {
      whole = vocabulary_.find(piece);
    } else if (const auto found = whole_pieces_.find(std::string(piece));
               found != whole_pieces_.end()) {
      whole = found->second;
    }
    if (whole >= 0) {
      ids.push_back(whole);
      return;
    }
  }
  merge(piece, scratch, ids);
}

std::string BpeModel::description() const {
  return fmt::format("{}BPE, {} merges", byte_level_ ? "byte-level " : "", num_merges_);
}

}  // namespace rhea::tokenizer
