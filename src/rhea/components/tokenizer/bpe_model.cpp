// Byte-pair encoding of one piece of text, with a cache of short pieces.
#include "rhea/components/tokenizer/bpe_model.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {
namespace {

constexpr size_t kCacheSlots = 1 << 16;
constexpr size_t kCacheLimit = kCacheSlots / 2;
constexpr size_t kLongestCached = 48;

}  // namespace

void MergeTable::reserve(size_t count) {
  size_t slots = 16;
  while (slots < count * 2) slots *= 2;
  slots_.assign(slots, Slot{});
  mask_ = slots - 1;
}

bool MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = make_key(left, right);
  size_t slot = hash(key);
  while (slots_[slot].key != kEmpty) {
    if (slots_[slot].key == key) return false;
    slot = (slot + 1) & mask_;
  }
  slots_[slot] = {key, merge};
  return true;
}

BpeModel::Scratch::Scratch() : cache(kCacheSlots) {}

BpeModel::BpeModel(const JsonField& field, bool byte_level) : byte_level_(byte_level) {
  // Files of older versions leave the type out.
  const std::string type = field["type"].string_or("BPE");
  if (type != "BPE") field["type"].fail("model type \"" + type + "\" is not supported (BPE is)");
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!field[name].string_or("").empty()) field[name].fail("only an empty one is supported");
  if (!field["dropout"].is_null() && field["dropout"].value() != 0)
    field["dropout"].fail("merges dropped at random are not supported; set it to null");
  byte_fallback_ = field["byte_fallback"].boolean_or(false);
  fuse_unknown_ = field["fuse_unk"].boolean_or(false);
  ignore_merges_ = field["ignore_merges"].boolean_or(false);

  const JsonField vocab = field["vocab"];
  vocabulary_.reserve(vocab.object().size());
  for (const auto& [token, id_value] : vocab.object().items()) {
    const int32_t id = JsonField(id_value, vocab.where() + "[\"" + token + "\"]").id();
    if (static_cast<size_t>(id) >= tokens_.size()) tokens_.resize(static_cast<size_t>(id) + 1);
    std::string& entry = tokens_[static_cast<size_t>(id)];
    if (!entry.empty())
      vocab.fail(fmt::format("id {} is given to both \"{}\" and \"{}\"", id, entry, token));
    entry = token;
    vocabulary_.emplace(token, id);
  }
  const std::string unknown = field["unk_token"].string_or("");
  if (!unknown.empty()) {
    const auto found = vocabulary_.find(unknown);
    if (found == vocabulary_.end())
      field["unk_token"].fail("\"" + unknown + "\" is not in the vocabulary");
    unknown_id_ = found->second;
  }
  add_merges(field["merges"]);
  find_byte_ids();
  if (ignore_merges_ && byte_level_)
    for (const auto& [token, id] : vocabulary_)
      if (auto bytes = alphabet_to_bytes(token)) whole_pieces_.emplace(std::move(*bytes), id);
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
    const auto found = vocabulary_.find(token);
    if (found == vocabulary_.end())
      field.item(rank).fail(fmt::format(
          "merge of \"{}\" and \"{}\": \"{}\" is not in the vocabulary", left, right, token));
    return found->second;
  };
  const int32_t left_id = id_of(left);
  const int32_t right_id = id_of(right);
  merges_.insert(left_id, right_id, {narrow<int32_t>(rank), id_of(left + right)});
}

void BpeModel::find_byte_ids() {
  for (int byte = 0; byte < 256; ++byte) {
    std::string name;
    if (byte_level_) {
      append_utf8(name, byte_to_char(static_cast<uint8_t>(byte)));
    } else {
      name = fmt::format("<0x{:02X}>", byte);
    }
    const auto found = vocabulary_.find(name);
    byte_ids_[byte] = found == vocabulary_.end() ? -1 : found->second;
    if (found == vocabulary_.end() && byte_level_ && unknown_id_ < 0) ++num_missing_bytes_;
  }
}

void BpeModel::first_symbols(std::string_view piece, Scratch& scratch) const {
  scratch.symbols.clear();
  const auto push = [&](int32_t id) { scratch.symbols.push_back({id, -1, -1}); };
  bool after_unknown = false;
  const auto push_unknown = [&] {
    if (unknown_id_ >= 0 && !(fuse_unknown_ && after_unknown)) push(unknown_id_);
    after_unknown = true;
  };
  for (size_t at = 0; at < piece.size();) {
    if (byte_level_) {
      const int32_t id = byte_ids_[static_cast<unsigned char>(piece[at++])];
      if (id < 0) {
        push_unknown();
      } else {
        push(id);
        after_unknown = false;
      }
      continue;
    }
    const std::string_view character = piece.substr(at, decode_code_point(piece, at).length);
    at += character.size();
    const auto found = vocabulary_.find(std::string(character));
    const bool spelled_in_bytes = found == vocabulary_.end() && byte_fallback_ &&
                                  std::all_of(character.begin(), character.end(), [&](char byte) {
                                    return byte_ids_[static_cast<unsigned char>(byte)] >= 0;
                                  });
    if (found == vocabulary_.end() && !spelled_in_bytes) {
      push_unknown();
      continue;
    }
    after_unknown = false;
    if (spelled_in_bytes) {
      for (const char byte : character) push(byte_ids_[static_cast<unsigned char>(byte)]);
    } else {
      push(found->second);
    }
  }
  const int32_t count = narrow<int32_t>(scratch.symbols.size());
  for (int32_t i = 0; i < count; ++i) {
    scratch.symbols[static_cast<size_t>(i)].previous = i - 1;
    scratch.symbols[static_cast<size_t>(i)].next = i + 1 < count ? i + 1 : -1;
  }
}

void BpeModel::merge(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  first_symbols(piece, scratch);
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  heap.clear();
  const auto at = [&](int32_t index) -> Scratch::Symbol& {
    return symbols[static_cast<size_t>(index)];
  };
  // Lowest rank first, then leftmost.
  const auto later = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  };
  const auto consider = [&](int32_t left) {
    const int32_t right = left < 0 ? -1 : at(left).next;
    if (right < 0) return;
    const MergeTable::Merge found = merges_.find(at(left).id, at(right).id);
    if (found.rank < 0) return;
    heap.push_back({found.rank, left, at(left).id, at(right).id, found.id});
    std::push_heap(heap.begin(), heap.end(), later);
  };
  for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols.size()); ++i) consider(i);
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
  for (int32_t i = symbols.empty() ? -1 : 0; i >= 0; i = at(i).next) ids.push_back(at(i).id);
}

void BpeModel::encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (piece.empty()) return;
  const bool cached = piece.size() <= kLongestCached;
  const uint64_t hash = cached ? std::hash<std::string_view>()(piece) : 0;
  size_t slot = hash & (kCacheSlots - 1);
  if (cached) {
    for (; scratch.cache[slot].text_size != 0; slot = (slot + 1) & (kCacheSlots - 1)) {
      const Scratch::CacheSlot& entry = scratch.cache[slot];
      if (entry.hash != hash ||
          std::string_view(scratch.cache_text).substr(entry.text, entry.text_size) != piece)
        continue;
      const auto begin = scratch.cache_ids.begin() + entry.ids;
      ids.insert(ids.end(), begin, begin + entry.num_ids);
      return;
    }
  }
  const size_t first = ids.size();
  const auto& whole = byte_level_ ? whole_pieces_ : vocabulary_;
  const auto found = ignore_merges_ ? whole.find(std::string(piece)) : whole.end();
  if (found != whole.end()) {
    ids.push_back(found->second);
  } else {
    merge(piece, scratch, ids);
  }
  if (!cached) return;
  if (scratch.cache_used == kCacheLimit) {
    std::fill(scratch.cache.begin(), scratch.cache.end(), Scratch::CacheSlot{});
    scratch.cache_used = 0;
    scratch.cache_text.clear();
    scratch.cache_ids.clear();
    slot = hash & (kCacheSlots - 1);
  }
  ++scratch.cache_used;
  scratch.cache[slot] = {
      hash, static_cast<uint32_t>(scratch.cache_text.size()), static_cast<uint32_t>(piece.size()),
      static_cast<uint32_t>(scratch.cache_ids.size()), static_cast<uint32_t>(ids.size() - first)};
  scratch.cache_text.append(piece);
  scratch.cache_ids.insert(scratch.cache_ids.end(),
                           ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
}

}  // namespace rhea::tokenizer
