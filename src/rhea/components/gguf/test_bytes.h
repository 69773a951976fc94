// GGUF files of tests.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/components/gguf/file.h"
#include "tests/support/error_of.h"

namespace rhea::gguf {

// A GGUF file put together by hand.
class Bytes {
 public:
  template <class T>
  Bytes& number(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Bytes& string(std::string_view text) {
    number<uint64_t>(text.size());
    text_ += text;
    return *this;
  }
  Bytes& header(uint64_t num_tensors, uint64_t num_fields, uint32_t version = 3) {
    text_ += "GGUF";
    return number(version).number(num_tensors).number(num_fields);
  }
  Bytes& tensor(std::string_view name, std::vector<uint64_t> dims, uint32_t type, uint64_t offset) {
    string(name).number(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) number(dim);
    return number(type).number(offset);
  }
  Bytes& data(size_t size) {
    text_.resize((text_.size() + 31) / 32 * 32);
    text_.resize(text_.size() + size);
    return *this;
  }
  Bytes& text_field(std::string_view key, std::string_view value) {
    return string(key).number<uint32_t>(8).string(value);
  }
  Bytes& count_field(std::string_view key, uint32_t value) {
    return string(key).number<uint32_t>(4).number(value);
  }
  Bytes& texts_field(std::string_view key, const std::vector<std::string>& values) {
    string(key).number<uint32_t>(9).number<uint32_t>(8).number<uint64_t>(values.size());
    for (const std::string& value : values) string(value);
    return *this;
  }
  Bytes& kinds_field(std::string_view key, const std::vector<int32_t>& values) {
    string(key).number<uint32_t>(9).number<uint32_t>(5).number<uint64_t>(values.size());
    for (const int32_t value : values) number(value);
    return *this;
  }
  const std::string& text() const { return text_; }
  std::string error() const {
    return support::error_of([&] { parse(std::as_bytes(std::span(text_)), "x.gguf"); });
  }

 private:
  std::string text_;
};

}  // namespace rhea::gguf
