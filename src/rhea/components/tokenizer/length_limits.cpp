#include "rhea/components/tokenizer/length_limits.h"

#include <nlohmann/json.hpp>

namespace rhea::tokenizer {
namespace {

bool is_left(const JsonField& field) {
  const std::string direction = field.string_or("Right");
  if (direction != "Left" && direction != "Right")
    field.fail("\"" + direction + "\" is not one of Left, Right");
  return direction == "Left";
}

std::optional<LengthLimits::Truncation> parse_truncation(const JsonField& field) {
  if (field.is_null()) return std::nullopt;
  const std::string strategy = field["strategy"].string_or("LongestFirst");
  // For one text they all mean the same; the second text of a pair is not there to be shortened.
  if (strategy != "LongestFirst" && strategy != "OnlyFirst")
    field["strategy"].fail("\"" + strategy + "\" is not one of LongestFirst, OnlyFirst");
  return LengthLimits::Truncation{field["max_length"].id(), is_left(field["direction"])};
}

std::optional<LengthLimits::Padding> parse_padding(const JsonField& field) {
  if (field.is_null()) return std::nullopt;
  LengthLimits::Padding padding;
  const JsonField strategy = field["strategy"];
  if (strategy.value().is_object()) {
    padding.length = strategy["Fixed"].id();
  } else if (strategy.string_or("BatchLongest") != "BatchLongest") {
    strategy.fail("expected \"BatchLongest\" or {\"Fixed\": length}");
  }
  if (!field["pad_to_multiple_of"].is_null()) padding.multiple = field["pad_to_multiple_of"].id();
  padding.in_front = is_left(field["direction"]);
  padding.id = field["pad_id"].id();
  return padding;
}

}  // namespace

LengthLimits::LengthLimits(const JsonField& truncation_field, const JsonField& padding_field)
    : truncation(parse_truncation(truncation_field)), padding(parse_padding(padding_field)) {}

void LengthLimits::truncate(std::vector<int32_t>& ids, size_t num_added) const {
  if (!truncation) return;
  const auto limit = static_cast<size_t>(truncation->max_length);
  const size_t room = limit > num_added ? limit - num_added : 0;
  if (ids.size() <= room) return;
  if (truncation->keeps_end)
    ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(room));
  else
    ids.resize(room);
}

void LengthLimits::pad(std::vector<int32_t>& ids) const {
  if (!padding) return;
  size_t length = padding->length ? static_cast<size_t>(*padding->length) : ids.size();
  const auto multiple = static_cast<size_t>(padding->multiple);
  if (multiple > 0) length = (length + multiple - 1) / multiple * multiple;
  if (ids.size() >= length) return;
  ids.insert(padding->in_front ? ids.begin() : ids.end(), length - ids.size(), padding->id);
}

}  // namespace rhea::tokenizer
