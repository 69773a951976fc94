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
  // From the "normalizer" field: NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, Replace,
  // Sequence. Throws Error naming any other type.
  explicit Normalizer(const JsonField& field) { add(field, 0); }

  bool is_identity() const { return steps_.empty(); }
  // Replaces `text` (valid UTF-8) by its normalized form.
  void apply(std::string& text) const;
  const std::string& description() const { return description_; }

 private:
  void add(const JsonField& field, int depth);
  std::vector<std::function<void(std::string&)>> steps_;
  std::string description_;
};

// Replacement of each match of a {"String": s} or {"Regex": r} pattern; shared by normalizers and
// decoders.
std::function<void(std::string&)> make_replace(const JsonField& component);

}  // namespace rhea::tokenizer
