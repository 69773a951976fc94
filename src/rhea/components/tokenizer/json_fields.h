// Typed fields of JSON objects; every error says where in the file it is, what was expected and
// what was found.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace rhea::tokenizer {

using Json = nlohmann::json;

// One JSON value and its place, "tokenizer.json: pre_tokenizer.pretokenizers[0]".
class JsonField {
 public:
  JsonField(const Json& value, std::string where) : value_(&value), where_(std::move(where)) {}

  const Json& value() const { return *value_; }
  const std::string& where() const { return where_; }
  bool is_null() const;
  // Member of an object; null where it is absent.
  JsonField operator[](std::string_view key) const;
  JsonField item(size_t index) const;
  size_t size() const;

  // The value as the type, or Error.
  const std::string& string() const;
  bool boolean() const;
  int32_t id() const;
  const Json& object() const;
  const Json& array() const;
  // As above with a value for absent or null.
  std::string string_or(std::string_view fallback) const;
  bool boolean_or(bool fallback) const;

  [[noreturn]] void fail(const std::string& problem) const;

 private:
  [[noreturn]] void fail_type(std::string_view expected) const;
  const Json* value_;
  std::string where_;
};

// Nested components (a Sequence inside a Sequence ...) beyond this depth are refused.
inline constexpr int kMaxComponentDepth = 16;

}  // namespace rhea::tokenizer
