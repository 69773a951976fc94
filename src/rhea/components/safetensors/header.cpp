// Header parsing: a SAX handler, because a DOM would silently keep one of two equal names.
#include "rhea/components/safetensors/header.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "rhea/base/downloaded.h"
#include "rhea/base/error.h"

namespace rhea::safetensors {
namespace {

using Json = nlohmann::json;

// Accepts exactly {"name": {"dtype": s, "shape": [n...], "data_offsets": [n, n]}, "__metadata__":
// {s: s}}.
class HeaderHandler : public nlohmann::json_sax<Json> {
 public:
  HeaderHandler(std::string_view where, Header& header) : where_(where), header_(header) {}

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override {
    return unexpected(fmt::format("{}", value));
  }
  bool number_float(number_float_t, const string_t& text) override { return unexpected(text); }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) {
      if (value > static_cast<uint64_t>(INT64_MAX))
        fail("tensor '{}' has a dimension of {}", entry_.name, value);
      entry_.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (place_ == Place::offsets) {
      if (num_offsets_ == 2) fail("tensor '{}' has more than two data_offsets", entry_.name);
      (num_offsets_++ == 0 ? entry_.begin : entry_.end) = value;
      return true;
    }
    return unexpected(fmt::format("{}", value));
  }

  bool string(string_t& text) override {
    if (place_ == Place::metadata) {
      header_.metadata[key_] = text;
      return true;
    }
    if (place_ != Place::entry || key_ != "dtype") return unexpected("a string");
    const auto dtype = parse_element_type(text);
    if (!dtype) fail("tensor '{}' has the unknown dtype '{}'", entry_.name, text);
    entry_.dtype = *dtype;
    return true;
  }

  bool start_object(size_t) override {
    switch (place_) {
      case Place::outside:
        place_ = Place::top;
        return true;
      case Place::top:
        keys_.clear();
        if (key_ == "__metadata__") {
          place_ = Place::metadata;
        } else {
          place_ = Place::entry;
          entry_ = Entry{};
          entry_.name = key_;
          num_offsets_ = 0;
        }
        return true;
      default:
        return unexpected("an object");
    }
  }

  bool key(string_t& name) override {
    if (place_ == Place::top) {
      if (!names_.insert(name).second) fail("duplicate name '{}' in the header", name);
    } else {
      if (!keys_.insert(name).second)
        fail("duplicate key '{}' in the entry of '{}'", name, owner());
      if (place_ == Place::entry && name != "dtype" && name != "shape" && name != "data_offsets")
        fail("tensor '{}' has the unknown key '{}' (known: dtype, shape, data_offsets)",
             entry_.name, name);
    }
    key_ = name;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::entry) {
      for (const char* needed : {"dtype", "shape", "data_offsets"}) {
        if (!keys_.contains(needed)) fail("tensor '{}' has no {}", entry_.name, needed);
      }
      header_.entries.push_back(std::move(entry_));
    }
    place_ = place_ == Place::top ? Place::outside : Place::top;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ == Place::entry && key_ == "shape")
      place_ = Place::shape;
    else if (place_ == Place::entry && key_ == "data_offsets")
      place_ = Place::offsets;
    else
      return unexpected("an array");
    return true;
  }

  bool end_array() override {
    if (place_ == Place::offsets && num_offsets_ != 2)
      fail("tensor '{}' needs two data_offsets", entry_.name);
    place_ = Place::entry;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    fail(
        "the header is not valid JSON at its byte {}; the file is damaged or is no safetensors "
        "file",
        position);
  }

 private:
  enum class Place { outside, top, metadata, entry, shape, offsets };

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error("{}: {}", where_, fmt::format(format, std::forward<Args>(args)...));
  }
  std::string owner() const { return place_ == Place::metadata ? "__metadata__" : entry_.name; }
  bool unexpected(std::string_view found) const {
    switch (place_) {
      case Place::outside:
        fail("the header is {}, not a JSON object", found);
      case Place::top:
        fail("'{}' is {} in the header, not an object", key_, found);
      case Place::metadata:
        fail("__metadata__ '{}' is {}, not a string", key_, found);
      default:
        fail("tensor '{}' has {} in its {}", entry_.name, found, key_);
    }
  }

  std::string_view where_;
  Header& header_;
  Place place_ = Place::outside;
  std::string key_;
  Entry entry_;
  int num_offsets_ = 0;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> keys_;
};

void check_ranges(const Header& header, uint64_t data_bytes, std::string_view where) {
  uint64_t expected = 0;
  const Entry* previous = nullptr;
  for (const Entry& entry : header.entries) {
    if (entry.begin < expected) {
      throw Error(
          "{}: tensors '{}' and '{}' overlap: '{}' begins at byte {}, the one before ends at {}",
          where, previous->name, entry.name, entry.name, entry.begin, expected);
    }
    if (entry.begin > expected) {
      throw Error("{}: gap of {} bytes before tensor '{}', which begins at byte {}", where,
                  entry.begin - expected, entry.name, entry.begin);
    }
    expected = entry.end;
    previous = &entry;
  }
  if (expected > data_bytes) {
    throw Error(
        "{}: the header describes {} bytes of data, the file holds {}; it is truncated (incomplete "
        "download "
        "or copy?)",
        where, expected, data_bytes);
  }
  if (expected < data_bytes) {
    throw Error("{}: {} bytes follow the last tensor, which no tensor owns", where,
                data_bytes - expected);
  }
}

}  // namespace

uint64_t tensor_bytes(ElementType dtype, std::span<const int64_t> shape, std::string_view where) {
  // The product of the non-zero dimensions must fit too, so that no later order of multiplication
  // overflows.
  auto bits = static_cast<uint64_t>(element_bits(dtype));
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim == 0)
      empty = true;
    else if (dim < 0 || __builtin_mul_overflow(bits, static_cast<uint64_t>(dim), &bits) ||
             bits > INT64_MAX)
      throw Error("{}: the size of shape [{}] overflows", where, fmt::join(shape, ", "));
  }
  if (empty) return 0;
  if (bits % 8 != 0)
    throw Error("{}: {} elements of {} bits do not fill whole bytes", where,
                bits / static_cast<uint64_t>(element_bits(dtype)), element_bits(dtype));
  return bits / 8;
}

Header parse_header(std::span<const std::byte> file, std::string_view where) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  check_downloaded(text, where);
  if (file.size() < 8)
    throw Error("{}: {} bytes are too few for a safetensors file", where, file.size());
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<uint64_t>(file[i]);
  if (length > kMaxHeaderBytes) {
    throw Error("{}: header length {} is above the limit of {}; this is no safetensors file", where,
                length, kMaxHeaderBytes);
  }
  if (length > file.size() - 8) {
    throw Error("{}: header length {} reaches past the end of the file ({} bytes); it is truncated",
                where, length, file.size());
  }
  Header header;
  header.data_begin = 8 + length;
  HeaderHandler handler(where, header);
  const std::string_view json = text.substr(8, length);
  Json::sax_parse(json.begin(), json.end(), &handler);
  for (const Entry& entry : header.entries) {
    const std::string name = fmt::format("{}: tensor '{}'", where, entry.name);
    const uint64_t bytes = tensor_bytes(entry.dtype, entry.shape, name);
    if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
      throw Error("{} is {} [{}], {} bytes, but its data_offsets are [{}, {}]", name,
                  element_type_name(entry.dtype), fmt::join(entry.shape, ", "), bytes, entry.begin,
                  entry.end);
    }
  }
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const Entry& a, const Entry& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
                   });
  check_ranges(header, file.size() - header.data_begin, where);
  return header;
}

std::string format_header(std::span<const Entry> entries,
                          const std::map<std::string, std::string>& metadata) {
  Json json = Json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  for (const Entry& entry : entries) {
    json[entry.name] = {{"dtype", element_type_name(entry.dtype)},
                        {"shape", entry.shape},
                        {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = json.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  return out + text;
}

}  // namespace rhea::safetensors
