// Normalizers of tokenizer.json: what happens to text before it is cut and merged.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "rhea/components/tokenizer/json_fields.h"

namespace rhea::tokenizer {

class Normalizer {
 public:
  // Identity.
  Normalizer() = default;
  // From the "normalizer" field: every type of the format. Throws Error naming any other.
  explicit Normalizer(const JsonField& field) { add(field, 0); }

  // Replaces `text` (valid UTF-8) by its normalized form. True where characters were taken off its
  // front: what is left does not begin where the text began (Metaspace asks).
  bool apply(std::string& text) const;
  const std::string& description() const { return description_; }

 private:
  // Changes the text; true where it took characters off the front.
  using Step = std::function<bool(std::string&)>;
  void add(const JsonField& field, int depth);
  void add_bert(const JsonField& field);
  std::vector<Step> steps_;
  std::string description_;
};

// Replacement of each match of a {"String": s} or {"Regex": r} pattern; shared by normalizers and
// decoders. True where the front of the text went.
std::function<bool(std::string&)> make_replace(const JsonField& component);

}  // namespace rhea::tokenizer
