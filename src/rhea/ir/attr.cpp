// The attribute map.
#include "rhea/ir/attr.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "rhea/base/error.h"

namespace rhea::ir {
namespace {

template <class T>
const T& get(const Attrs& attrs, std::string_view name) {
  const Attr* attr = attrs.find(name);
  RHEA_CHECK(attr != nullptr, "attribute '{}' is absent", name);
  const T* value = std::get_if<T>(attr);
  RHEA_CHECK(value != nullptr, "attribute '{}' has another type", name);
  return *value;
}

}  // namespace

Attrs::Attrs(std::initializer_list<std::pair<std::string, Attr>> items) {
  for (const auto& [name, value] : items) set(name, value);
}

void Attrs::set(std::string_view name, Attr value) {
  const auto at =
      std::lower_bound(items_.begin(), items_.end(), name,
                       [](const auto& item, std::string_view key) { return item.first < key; });
  if (at != items_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    items_.emplace(at, std::string(name), std::move(value));
  }
}

const Attr* Attrs::find(std::string_view name) const {
  for (const auto& [key, value] : items_) {
    if (key == name) return &value;
  }
  return nullptr;
}

int64_t Attrs::i64(std::string_view name) const { return get<int64_t>(*this, name); }
double Attrs::f64(std::string_view name) const { return get<double>(*this, name); }
const std::string& Attrs::str(std::string_view name) const { return get<std::string>(*this, name); }
const std::vector<int64_t>& Attrs::list(std::string_view name) const {
  return get<std::vector<int64_t>>(*this, name);
}
DType Attrs::dtype(std::string_view name) const { return get<DType>(*this, name); }

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string to_string(const Attr& attr) {
  struct Text {
    std::string operator()(int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const {
      std::string text = fmt::format("{}", v);  // shortest text that reads back to the same bits
      if (text.find_first_of(".einf") == std::string::npos) text += ".0";
      return text;
    }
    std::string operator()(const std::string& v) const { return ir::quoted(v); }
    std::string operator()(const std::vector<int64_t>& v) const {
      return fmt::format("[{}]", fmt::join(v, ","));
    }
    std::string operator()(DType v) const { return std::string(dtype_name(v)); }
  };
  return std::visit(Text{}, attr);
}

}  // namespace rhea::ir
