// The Unigram model of tokenizer.json: pieces with scores; the way through a text whose scores sum
// to the most.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/components/tokenizer/json_fields.h"
#include "rhea/components/tokenizer/pair_table.h"
#include "rhea/components/tokenizer/vocabulary.h"

namespace rhea::tokenizer {

class UnigramModel {
 public:
  // Buffers of one thread.
  class Scratch {
   private:
    friend class UnigramModel;
    // The best way to the end of a prefix of the text.
    struct Step {
      double score = 0;
      int32_t begin = -1;  // of its last piece; -1: no way found yet
      int32_t id = 0;
    };
    std::vector<Step> steps;
    std::vector<int32_t> reversed;
  };

  // From the "model" field: vocab [[piece, score], ...], unk_id, byte_fallback. Throws Error naming
  // the field.
  explicit UnigramModel(const JsonField& field);

  // Appends the ids of one piece of text. Throws Error for a character that no entry covers where
  // there is no unknown token.
  void encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::string description() const;

 private:
  void build_trie();
  // Entries that begin at `at`: calls f(end, id), shorter ones first.
  template <class F>
  void for_each_prefix(std::string_view piece, size_t at, F&& f) const;
  void push_reversed(std::string_view text, int32_t id, std::vector<int32_t>& reversed) const;

  Vocabulary vocabulary_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  int32_t unknown_id_ = -1;
  bool byte_fallback_ = false;
  int32_t byte_ids_[256];
  // Children of the root by byte; those of other nodes in the table, as (entry or -1, node).
  int32_t roots_[256];
  std::vector<int32_t> entries_;  // by node
  PairTable children_;
};

}  // namespace rhea::tokenizer
