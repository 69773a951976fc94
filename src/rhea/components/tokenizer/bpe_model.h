// The BPE model of tokenizer.json: a vocabulary and ranked merges, over the byte alphabet or over
// characters.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rhea/components/tokenizer/json_fields.h"

namespace rhea::tokenizer {

// Hash map from 64-bit keys to a pair of ints, for the one lookup that encoding does per pair of
// symbols.
class MergeTable {
 public:
  struct Merge {
    int32_t rank = -1;
    int32_t id = -1;
  };
  void reserve(size_t count);
  // The first insertion of a key stays; false for a repeated key.
  bool insert(int32_t left, int32_t right, Merge merge);
  // rank -1: no such merge.
  Merge find(int32_t left, int32_t right) const {
    const uint64_t key = make_key(left, right);
    for (size_t slot = hash(key);; slot = (slot + 1) & mask_) {
      const Slot& entry = slots_[slot];
      if (entry.key == key) return entry.merge;
      if (entry.key == kEmpty) return {};
    }
  }

 private:
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge;
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

class BpeModel {
 public:
  // Buffers of one thread, with the results for short pieces seen before.
  class Scratch {
   public:
    Scratch();

   private:
    friend class BpeModel;
    struct Symbol {
      int32_t id = 0;
      int32_t previous = -1;
      int32_t next = -1;
    };
    // A possible merge of symbol `left` with its successor; stale once either has changed.
    struct Candidate {
      int32_t rank = 0;
      int32_t left = 0;
      int32_t left_id = 0;
      int32_t right_id = 0;
      int32_t id = 0;
    };
    struct CacheSlot {
      uint64_t hash = 0;
      uint32_t text = 0, text_size = 0, ids = 0, num_ids = 0;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
    std::vector<CacheSlot> cache;
    size_t cache_used = 0;
    std::string cache_text;
    std::vector<int32_t> cache_ids;
  };

  // From the "model" field. `byte_level`: pieces are raw bytes that stand for characters of the
  // byte alphabet. Throws Error for other model types, a merge of a part that is not in the
  // vocabulary, ids given twice.
  BpeModel(const JsonField& field, bool byte_level);

  // Appends the ids of one piece of text.
  void encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;

  // Spelling in the file; empty for ids that are not used.
  const std::vector<std::string>& tokens() const { return tokens_; }
  const std::unordered_map<std::string, int32_t>& vocabulary() const { return vocabulary_; }
  size_t num_merges() const { return num_merges_; }
  // Bytes that no entry can spell (byte level without unknown token): they are dropped, as in the
  // reference implementation.
  int num_missing_bytes() const { return num_missing_bytes_; }

 private:
  void add_merges(const JsonField& field);
  void add_merge(const std::string& left, const std::string& right, size_t rank,
                 const JsonField& field);
  void find_byte_ids();
  void first_symbols(std::string_view piece, Scratch& scratch) const;
  void merge(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;

  bool byte_level_ = false;
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;
  int32_t unknown_id_ = -1;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t> vocabulary_;
  // Whole pieces as plain bytes; only filled with ignore_merges on a byte-level model.
  std::unordered_map<std::string, int32_t> whole_pieces_;
  MergeTable merges_;
  size_t num_merges_ = 0;
  // Id of each byte: of its character in the alphabet (byte level) or of <0xNN> (byte fallback); -1
  // where there is none.
  int32_t byte_ids_[256];
  int num_missing_bytes_ = 0;
};

}  // namespace rhea::tokenizer
