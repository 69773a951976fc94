// A hash map from pairs of ints to pairs of ints, for the one lookup that encoding does per symbol.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rhea::tokenizer {

// BPE: two symbols to rank and id of their merge. A trie: node and byte to its child.
class PairTable {
 public:
  struct Value {
    int32_t rank = -1;
    int32_t id = -1;
  };
  void reserve(size_t count) {
    size_t slots = 16;
    while (slots < count * 2) slots *= 2;
    slots_.assign(slots, Slot{});
    mask_ = slots - 1;
  }
  // At most as many keys as were reserved. The last insertion of a key counts.
  void insert(int32_t left, int32_t right, Value value) {
    const uint64_t key = make_key(left, right);
    size_t slot = hash(key);
    while (slots_[slot].key != kEmpty && slots_[slot].key != key) slot = (slot + 1) & mask_;
    slots_[slot] = {key, value};
  }
  // rank and id -1: no such key.
  Value find(int32_t left, int32_t right) const {
    const uint64_t key = make_key(left, right);
    for (size_t slot = hash(key);; slot = (slot + 1) & mask_) {
      const Slot& entry = slots_[slot];
      if (entry.key == key) return entry.value;
      if (entry.key == kEmpty) return {};
    }
  }

 private:
  struct Slot {
    uint64_t key = kEmpty;
    Value value;
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static uint64_t make_key(int32_t left, int32_t right) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) |
           static_cast<uint32_t>(right);
  }
  size_t hash(uint64_t key) const {
    return static_cast<size_t>((key * 0x9e3779b97f4a7c15ULL) >> 20) & mask_;
  }
  std::vector<Slot> slots_{Slot{}};
  size_t mask_ = 0;
};

}  // namespace rhea::tokenizer
