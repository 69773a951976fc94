// The fields "truncation" and "padding" of tokenizer.json. Training never applies them: no text is
// lost. EncodeOptions::truncate_and_pad asks for them.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "rhea/components/tokenizer/json_fields.h"

namespace rhea::tokenizer {

struct LengthLimits {
  struct Truncation {
    int32_t max_length = 0;  // special tokens around the text included
    bool keeps_end = false;  // direction Left: the front is cut off
  };
  struct Padding {
    std::optional<int32_t> length;  // strategy Fixed; otherwise only up to `multiple`
    int32_t multiple = 0;           // 0: any length
    bool in_front = false;          // direction Left
    int32_t id = 0;
  };
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;

  LengthLimits() = default;
  // From the two fields, null where absent. Throws Error naming the field.
  LengthLimits(const JsonField& truncation_field, const JsonField& padding_field);

  // Shortens the ids of a text, around which `num_added` special tokens will stand.
  void truncate(std::vector<int32_t>& ids, size_t num_added) const;
  // Fills up the ids of a text with its special tokens.
  void pad(std::vector<int32_t>& ids) const;
};

}  // namespace rhea::tokenizer
