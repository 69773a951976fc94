// The fields of the component Metaspace, which is a pre-tokenizer and a decoder.
#pragma once
#include <string>

#include "rhea/components/tokenizer/json_fields.h"

namespace rhea::tokenizer {

// Spaces are written as a visible mark, and a mark is put before a text that begins without one.
struct Metaspace {
  enum class Prepend { always, first, never };  // first: only where the whole text begins
  std::string mark;                             // one character, "▁"
  Prepend prepend = Prepend::always;
  bool split = true;  // cut before each mark
};

// Takes the older spelling `add_prefix_space` too. Throws Error naming the field.
Metaspace parse_metaspace(const JsonField& field);

}  // namespace rhea::tokenizer
