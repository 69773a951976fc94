// Decoders of tokenizer.json: from token spellings back to text.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "rhea/components/tokenizer/json_fields.h"

namespace rhea::tokenizer {

class Decoder {
 public:
  struct Piece {
    std::string text;
    bool added = false;  // an added token stands for itself
  };

  // Joins the spellings with spaces.
  Decoder() = default;
  // From the "decoder" field: every type of the format. Throws Error naming any other.
  explicit Decoder(const JsonField& field) : joins_with_spaces_(field.is_null()) { add(field, 0); }
  // Text of the pieces; ill-formed UTF-8 becomes U+FFFD.
  std::string decode(std::vector<Piece> pieces) const;

 private:
  void add(const JsonField& field, int depth);
  bool joins_with_spaces_ = true;
  std::vector<std::function<void(std::vector<Piece>&)>> steps_;
};

}  // namespace rhea::tokenizer
