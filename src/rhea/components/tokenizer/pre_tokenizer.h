// Pre-tokenizers of tokenizer.json: how text is cut into pieces that merges never cross.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "rhea/components/tokenizer/json_fields.h"
#include "rhea/components/tokenizer/regex.h"

namespace rhea::tokenizer {

class PreTokenizer {
 public:
  // Buffers of one thread.
  struct Scratch {
    RegexScratch regex;
    std::vector<Range> matches, pieces, next;
  };

  // No cuts.
  PreTokenizer() = default;
  // From the "pre_tokenizer" field: Split, ByteLevel, Digits, Whitespace, WhitespaceSplit,
  // Sequence. Throws Error naming any other type.
  explicit PreTokenizer(const JsonField& field) { add(field, 0); }

  // Whether a ByteLevel stage writes the pieces in the byte alphabet; pieces below stay plain bytes
  // in either case.
  bool byte_level() const { return byte_level_; }
  // Cuts `text` (not empty; pieces may get a space in front) into scratch.pieces.
  void split(std::string& text, Scratch& scratch) const;
  const std::string& description() const { return description_; }

 private:
  enum class Behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };
  struct Stage {
    std::vector<Regex> regex;  // one, or none for a stage that only adds the space
    Behavior behavior = Behavior::isolated;
    bool invert = false;
    bool add_prefix_space = false;
  };
  void add(const JsonField& field, int depth);
  void add_regex(const std::string& pattern, Behavior behavior, bool literal = false,
                 bool invert = false);
  static Behavior parse_behavior(const JsonField& field);
  static void split_piece(const Stage& stage, std::string_view text, Range piece, Scratch& scratch);

  std::vector<Stage> stages_;
  bool byte_level_ = false;
  std::string description_;
};

}  // namespace rhea::tokenizer
