// Pre-tokenizers of tokenizer.json: how text is cut into pieces that merges never cross.
#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rhea/components/tokenizer/json_fields.h"
#include "rhea/components/tokenizer/metaspace.h"
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
  // From the "pre_tokenizer" field: every type of the format. Throws Error naming any other.
  explicit PreTokenizer(const JsonField& field) { add(field, 0); }

  // Whether the last thing that happens to the pieces is that they are written in the byte
  // alphabet.
  bool ends_in_byte_alphabet() const;
  // Leaves that out: pieces stay plain bytes, for a model that reads them as such.
  void keep_bytes();
  // Cuts `text` (not empty; changed where a component changes it) into scratch.pieces, none of them
  // empty. `at_start`: the text begins where the whole text began.
  void split(std::string& text, bool at_start, Scratch& scratch) const;
  const std::string& description() const { return description_; }

 private:
  enum class Behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };
  using Predicate = bool (*)(char32_t);
  // Cuts at matches of an expression, or at each character of a class.
  struct Cut {
    std::variant<Regex, Predicate> separator;
    Behavior behavior = Behavior::isolated;
    bool invert = false;
  };
  struct PrefixSpace {};
  struct ByteAlphabet {};
  struct ScriptRuns {};
  struct FixedLength {
    int32_t length = 0;  // characters
  };
  using Stage = std::variant<Cut, PrefixSpace, ByteAlphabet, Metaspace, ScriptRuns, FixedLength>;

  void add(const JsonField& field, int depth);
  void add_byte_level(const JsonField& field);
  void add_metaspace(const JsonField& field);
  void add_regex(const std::string& pattern, Behavior behavior, bool literal = false,
                 bool invert = false);
  void add_predicate(Predicate predicate, Behavior behavior);
  static Behavior parse_behavior(const JsonField& field);
  static void cut(const Cut& stage, std::string_view text, Range piece, Scratch& scratch);
  static void cut_scripts(std::string_view text, Range piece, std::vector<Range>& pieces);
  static void cut_lengths(int32_t length, std::string_view text, Range piece,
                          std::vector<Range>& pieces);

  std::vector<Stage> stages_;
  std::string description_;
};

}  // namespace rhea::tokenizer
