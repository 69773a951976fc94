// Typed access to JSON with errors that name the place.
#include "rhea/components/tokenizer/json_fields.h"

#include <nlohmann/json.hpp>

#include "rhea/base/error.h"

namespace rhea::tokenizer {
namespace {

const Json kNull;

std::string excerpt(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

}  // namespace

JsonField JsonField::operator[](std::string_view key) const {
  const std::string where = where_ + (where_.ends_with(": ") ? "" : ".") + std::string(key);
  if (value_->is_object()) {
    const auto found = value_->find(key);
    if (found != value_->end()) return {*found, where};
  } else if (!value_->is_null()) {
    fail_type("an object");
  }
  return {kNull, where};
}

bool JsonField::is_null() const { return value_->is_null(); }

size_t JsonField::size() const { return value_->size(); }

JsonField JsonField::item(size_t index) const {
  return {array().at(index), where_ + "[" + std::to_string(index) + "]"};
}

const std::string& JsonField::string() const {
  if (!value_->is_string()) fail_type("a string");
  return value_->get_ref<const std::string&>();
}

bool JsonField::boolean() const {
  if (!value_->is_boolean()) fail_type("true or false");
  return value_->get<bool>();
}

int32_t JsonField::id() const {
  // The upper bound keeps tables that are indexed by id at a sane size whatever a broken file says.
  constexpr int64_t kMaxId = 1 << 22;
  if (!value_->is_number_integer()) fail_type("a token id");
  const bool too_large = value_->is_number_unsigned() && value_->get<uint64_t>() > kMaxId;
  const int64_t id = too_large ? -1 : value_->get<int64_t>();
  if (id < 0 || id > kMaxId) fail("a token id must lie in [0, 2^22], found " + excerpt(*value_));
  return static_cast<int32_t>(id);
}

const Json& JsonField::object() const {
  if (!value_->is_object()) fail_type("an object");
  return *value_;
}

const Json& JsonField::array() const {
  if (!value_->is_array()) fail_type("a list");
  return *value_;
}

std::string JsonField::string_or(std::string_view fallback) const {
  return is_null() ? std::string(fallback) : string();
}

bool JsonField::boolean_or(bool fallback) const { return is_null() ? fallback : boolean(); }

void JsonField::fail(const std::string& problem) const { throw Error("{}: {}", where_, problem); }

void JsonField::fail_type(std::string_view expected) const {
  if (is_null()) fail("missing; expected " + std::string(expected));
  fail("expected " + std::string(expected) + ", found " + excerpt(*value_));
}

}  // namespace rhea::tokenizer
