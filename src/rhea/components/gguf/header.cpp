// The binary header, read front to back by a cursor that knows where the file ends.
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "rhea/base/downloaded.h"
#include "rhea/base/error.h"
#include "rhea/components/gguf/file.h"

namespace rhea::gguf {
namespace {

// Kinds of metadata values, as the file numbers them.
enum Kind : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

constexpr uint32_t kMaxDims = 4;
constexpr int64_t kDefaultAlignment = 32;
constexpr int64_t kLargestAlignment = 1 << 20;
// Fewest bytes of an entry in the file: what bounds a count before anything is allocated.
constexpr uint64_t kMinFieldBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;

class Cursor {
 public:
  Cursor(std::span<const std::byte> file, std::string_view where) : file_(file), where_(where) {}

  template <class T>
  T read(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }
  std::string text(std::string_view what) {
    const auto bytes = take(read<uint64_t>(what), what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // A number of entries that take at least `min_bytes` each.
  uint64_t count(uint64_t min_bytes, std::string_view what) {
    const auto value = read<uint64_t>(what);
    if (value > remaining() / min_bytes)
      fail(
          "{} is {}, more than the {} bytes that are left can hold; the file is truncated or "
          "damaged",
          what, value, remaining());
    return value;
  }
  uint64_t position() const { return position_; }
  std::string_view where() const { return where_; }
  uint64_t remaining() const { return file_.size() - position_; }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error("{}: {}", where_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::span<const std::byte> take(uint64_t size, std::string_view what) {
    if (size > remaining())
      fail("{} at byte {} needs {} bytes, {} are left; the file is truncated or damaged", what,
           position_, size, remaining());
    const auto bytes = file_.subspan(position_, size);
    position_ += size;
    return bytes;
  }

  std::span<const std::byte> file_;
  std::string_view where_;
  uint64_t position_ = 0;
};

uint64_t size_of(uint32_t kind) {
  constexpr uint64_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};
  return kSizes[kind];
}

int64_t read_integer(Cursor& cursor, uint32_t kind, std::string_view key) {
  switch (kind) {
    case u8:
      return cursor.read<uint8_t>(key);
    case i8:
      return cursor.read<int8_t>(key);
    case u16:
      return cursor.read<uint16_t>(key);
    case i16:
      return cursor.read<int16_t>(key);
    case u32:
      return cursor.read<uint32_t>(key);
    case i32:
      return cursor.read<int32_t>(key);
    case i64:
      return cursor.read<int64_t>(key);
    default: {
      const auto value = cursor.read<uint64_t>(key);
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        cursor.fail("{} is {}, more than 63 bits hold", key, value);
      return static_cast<int64_t>(value);
    }
  }
}

bool read_bool(Cursor& cursor, std::string_view key) {
  const auto value = cursor.read<uint8_t>(key);
  if (value > 1) cursor.fail("{} is a boolean of value {}", key, value);
  return value != 0;
}

double read_float(Cursor& cursor, uint32_t kind, std::string_view key) {
  return kind == f32 ? static_cast<double>(cursor.read<float>(key)) : cursor.read<double>(key);
}

bool is_float_kind(uint32_t kind) { return kind == f32 || kind == f64; }

Value read_list(Cursor& cursor, const std::string& key) {
  const auto kind = cursor.read<uint32_t>(key);
  if (kind > f64 || kind == array) cursor.fail("{} is a list of unknown kind {}", key, kind);
  const uint64_t count = cursor.count(size_of(kind), key);
  const auto fill = [&](auto list, const auto& read_one) -> Value {
    list.reserve(count);
    for (uint64_t i = 0; i < count; ++i) list.push_back(read_one());
    return list;
  };
  if (kind == string) return fill(std::vector<std::string>(), [&] { return cursor.text(key); });
  if (is_float_kind(kind))
    return fill(std::vector<double>(), [&] { return read_float(cursor, kind, key); });
  return fill(std::vector<int64_t>(), [&] {
    return kind == boolean ? int64_t{read_bool(cursor, key)} : read_integer(cursor, kind, key);
  });
}

Value read_value(Cursor& cursor, const std::string& key) {
  const auto kind = cursor.read<uint32_t>(key);
  if (kind > f64) cursor.fail("{} is of unknown kind {}", key, kind);
  if (kind == array) return read_list(cursor, key);
  if (kind == string) return cursor.text(key);
  if (kind == boolean) return read_bool(cursor, key);
  if (is_float_kind(kind)) return read_float(cursor, kind, key);
  return read_integer(cursor, kind, key);
}

void check_magic(Cursor& cursor, std::span<const std::byte> file, Header& header) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  check_downloaded(text, cursor.where());
  if (!text.starts_with("GGUF")) cursor.fail("does not begin with GGUF; it is no GGUF file");
  cursor.read<uint32_t>("the magic");
  header.version = cursor.read<uint32_t>("the version");
  if (header.version == 2 || header.version == 3) return;
  const uint32_t swapped = __builtin_bswap32(header.version);
  if (swapped == 2 || swapped == 3)
    cursor.fail("is a big-endian file (version {}); only little-endian ones are read", swapped);
  cursor.fail("version {} of the format; versions 2 and 3 are read", header.version);
}

int64_t alignment_of(const Header& header, const Cursor& cursor) {
  for (const Field& field : header.fields) {
    if (field.key != "general.alignment") continue;
    const auto* value = std::get_if<int64_t>(&field.value);
    if (value == nullptr || *value < 1 || *value > kLargestAlignment ||
        !std::has_single_bit(static_cast<uint64_t>(*value)))
      cursor.fail("general.alignment is not a power of two from 1 to {}", kLargestAlignment);
    return *value;
  }
  return kDefaultAlignment;
}

// Bytes of the tensor; its shape is known.
uint64_t bytes_of(const Tensor& tensor, const Cursor& cursor) {
  const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % tensor.type->elements != 0)
    cursor.fail("tensor '{}' is {}, but {} comes in blocks of {}", tensor.name, tensor.describe(),
                tensor.type->name, tensor.type->elements);
  int64_t bytes = row / tensor.type->elements;
  bool overflow = __builtin_mul_overflow(bytes, tensor.type->bytes, &bytes);
  for (size_t d = 0; d + 1 < tensor.shape.size(); ++d)
    overflow = overflow || __builtin_mul_overflow(bytes, tensor.shape[d], &bytes);
  if (overflow)
    cursor.fail("the size of tensor '{}' [{}] overflows", tensor.name,
                fmt::join(tensor.shape, ", "));
  return static_cast<uint64_t>(bytes);
}

struct Place {
  uint64_t offset, size;
  size_t tensor;
};

Place read_tensor(Cursor& cursor, Header& header) {
  Tensor tensor;
  tensor.name = cursor.text("the name of a tensor");
  const auto num_dims = cursor.read<uint32_t>(tensor.name);
  if (num_dims > kMaxDims)
    cursor.fail("tensor '{}' has {} dimensions, at most {} are allowed", tensor.name, num_dims,
                kMaxDims);
  for (uint32_t d = 0; d < num_dims; ++d) {
    const auto dim = cursor.read<uint64_t>(tensor.name);
    if (dim == 0 || dim > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      cursor.fail("tensor '{}' has a dimension of {}", tensor.name, dim);
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(dim));
  }
  const auto id = cursor.read<uint32_t>(tensor.name);
  tensor.type = find_block_type(id);
  if (tensor.type == nullptr) cursor.fail("tensor '{}' has the unknown type {}", tensor.name, id);
  const auto offset = cursor.read<uint64_t>(tensor.name);
  const uint64_t size = bytes_of(tensor, cursor);
  header.tensors.push_back(std::move(tensor));
  return {offset, size, header.tensors.size() - 1};
}

// Tensors follow each other, each at the next multiple of the alignment.
void place_tensors(std::span<const std::byte> file, const Cursor& cursor, std::vector<Place> places,
                   Header& header) {
  const auto alignment = static_cast<uint64_t>(alignment_of(header, cursor));
  const auto align = [alignment](uint64_t at) {
    return (at + alignment - 1) / alignment * alignment;
  };
  const uint64_t begin = align(cursor.position());
  const uint64_t data_bytes = begin > file.size() ? 0 : file.size() - begin;
  std::ranges::stable_sort(places, {}, &Place::offset);
  uint64_t expected = 0;
  for (const Place& place : places) {
    Tensor& tensor = header.tensors[place.tensor];
    if (place.offset != expected)
      cursor.fail(
          "tensor '{}' begins at byte {} of the data, but {} at {}", tensor.name, place.offset,
          place.offset < expected ? "the one before it ends" : "the next free byte is", expected);
    if (place.offset > data_bytes || place.size > data_bytes - place.offset)
      cursor.fail(
          "tensor '{}' needs bytes {} to {} of the data, the file holds {}; it is truncated "
          "(incomplete download?)",
          tensor.name, place.offset, place.offset + place.size, data_bytes);
    tensor.blocks = file.subspan(begin + place.offset, place.size);
    expected = align(place.offset + place.size);
  }
}

}  // namespace

int64_t Tensor::num_elements() const {
  return static_cast<int64_t>(blocks.size()) / type->bytes * type->elements;
}

std::string Tensor::describe() const {
  return fmt::format("{} [{}]", type->name, fmt::join(shape, ", "));
}

Header parse(std::span<const std::byte> file, std::string_view where) {
  Header header;
  Cursor cursor(file, where);
  check_magic(cursor, file, header);
  const auto num_tensors = cursor.count(kMinTensorBytes, "the number of tensors");
  const auto num_fields = cursor.count(kMinFieldBytes, "the number of metadata entries");
  std::unordered_set<std::string> names;
  for (uint64_t i = 0; i < num_fields; ++i) {
    std::string key = cursor.text("a metadata key");
    if (!names.insert(key).second) cursor.fail("the metadata key '{}' comes twice", key);
    Value value = read_value(cursor, key);
    header.fields.push_back({std::move(key), std::move(value)});
  }
  names.clear();
  std::vector<Place> places;
  for (uint64_t i = 0; i < num_tensors; ++i) {
    places.push_back(read_tensor(cursor, header));
    if (!names.insert(header.tensors.back().name).second)
      cursor.fail("the tensor '{}' comes twice", header.tensors.back().name);
  }
  place_tensors(file, cursor, std::move(places), header);
  return header;
}

}  // namespace rhea::gguf
