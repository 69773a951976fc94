// The ids of short pieces that a thread has seen before.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rhea::tokenizer {

class PieceCache {
 public:
  PieceCache();
  // Appends the ids of `piece`; false where it is not known. What follows may be remember().
  bool recall(std::string_view piece, std::vector<int32_t>& ids);
  // The ids of the piece of the last recall(), which was in vain. A full cache starts anew.
  void remember(std::string_view piece, std::span<const int32_t> piece_ids);

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t text = 0, text_size = 0, ids = 0, num_ids = 0;
  };
  std::vector<Slot> slots_;
  size_t used_ = 0;
  std::string texts_;
  std::vector<int32_t> ids_;
  uint64_t hash_ = 0;
  size_t slot_ = 0;
};

}  // namespace rhea::tokenizer
