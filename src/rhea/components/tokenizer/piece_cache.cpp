#include "rhea/components/tokenizer/piece_cache.h"

#include <algorithm>
#include <functional>

namespace rhea::tokenizer {
namespace {

constexpr size_t kNumSlots = 1 << 16;
constexpr size_t kMostUsed = kNumSlots / 2;
constexpr size_t kLongest = 48;

}  // namespace

PieceCache::PieceCache() : slots_(kNumSlots) {}

bool PieceCache::recall(std::string_view piece, std::vector<int32_t>& ids) {
  if (piece.size() > kLongest) return false;
  hash_ = std::hash<std::string_view>()(piece);
  for (slot_ = hash_ % kNumSlots; slots_[slot_].text_size != 0; slot_ = (slot_ + 1) % kNumSlots) {
    const Slot& slot = slots_[slot_];
    if (slot.hash != hash_ || std::string_view(texts_).substr(slot.text, slot.text_size) != piece)
      continue;
    const auto begin = ids_.begin() + slot.ids;
    ids.insert(ids.end(), begin, begin + slot.num_ids);
    return true;
  }
  return false;
}

void PieceCache::remember(std::string_view piece, std::span<const int32_t> piece_ids) {
  if (piece.size() > kLongest) return;
  if (used_ == kMostUsed) {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    used_ = 0;
    texts_.clear();
    ids_.clear();
    slot_ = hash_ % kNumSlots;
  }
  ++used_;
  slots_[slot_] = {hash_, static_cast<uint32_t>(texts_.size()), static_cast<uint32_t>(piece.size()),
                   static_cast<uint32_t>(ids_.size()), static_cast<uint32_t>(piece_ids.size())};
  texts_.append(piece);
  ids_.insert(ids_.end(), piece_ids.begin(), piece_ids.end());
}

}  // namespace rhea::tokenizer
