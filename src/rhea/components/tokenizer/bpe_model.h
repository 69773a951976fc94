// The BPE model of tokenizer.json: a vocabulary and ranked merges, over the byte alphabet or over
// characters.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rhea/components/tokenizer/json_fields.h"
#include "rhea/components/tokenizer/pair_table.h"
#include "rhea/components/tokenizer/vocabulary.h"

namespace rhea::tokenizer {

class BpeModel {
 public:
  // Buffers of one thread.
  class Scratch {
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
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
    std::string spelling;
  };

  // Whether the model of this "model" field can read plain bytes that stand for characters of the
  // byte alphabet: nothing is put before or behind a character.
  static bool can_read_bytes(const JsonField& field);

  // From the "model" field. `byte_level`: pieces are raw bytes that stand for characters of the
  // byte alphabet. Throws Error for a merge of a part that is not in the vocabulary, ids given
  // twice, dropout.
  BpeModel(const JsonField& field, bool byte_level);

  // The end of the part of `piece` that begins at `at`: no merge joins what lies before and behind
  // it, so that parts can be encoded one by one. A long text without cuts becomes words this way,
  // which are short and come again.
  size_t part_end(std::string_view piece, size_t at) const;
  // Appends the ids of one piece of text, or of one of its parts.
  void encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::string description() const;
  // Bytes that no entry can spell (byte level without unknown token): they are dropped, as in the
  // reference implementation.
  int num_missing_bytes() const { return num_missing_bytes_; }

 private:
  void add_merges(const JsonField& field);
  void add_merge(const std::string& left, const std::string& right, size_t rank,
                 const JsonField& field);
  void find_byte_ids();
  void find_character_ids();
  void find_joined_characters();
  int32_t find_character(std::string_view piece, size_t begin, size_t end, Scratch& scratch) const;
  void byte_symbols(std::string_view piece, Scratch& scratch) const;
  void character_symbols(std::string_view piece, Scratch& scratch) const;
  void merge(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;

  bool byte_level_ = false;
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;
  std::string continuing_prefix_;  // before each character of a piece but the first
  std::string word_suffix_;        // behind the last one
  int32_t unknown_id_ = -1;
  Vocabulary vocabulary_;
  // Whole pieces as plain bytes; only filled with ignore_merges on a byte-level model.
  std::unordered_map<std::string, int32_t> whole_pieces_;
  std::vector<std::pair<int32_t, int32_t>> merge_parts_;  // while the tables are made
  PairTable merges_;
  size_t num_merges_ = 0;
  // Id of each byte: of its character in the alphabet (byte level) or of <0xNN> (byte fallback); -1
  // where there is none.
  int32_t byte_ids_[256];
  int num_missing_bytes_ = 0;
  // Ids of the entries of one character, by code point; -1 where there is none.
  std::vector<int32_t> character_ids_;
  // The last character of the left and the first of the right part of each merge; has_parts_ false:
  // pieces have no parts.
  PairTable joined_characters_;
  bool has_parts_ = false;
};

}  // namespace rhea::tokenizer
