// The header of a safetensors file: parsed with every rule of the format checked, and written.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/components/safetensors/element_type.h"

namespace rhea::safetensors {

// One tensor of the header; [begin, end) are bytes from the start of the data section.
struct Entry {
  std::string name;
  ElementType dtype = ElementType::F32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct Header {
  std::vector<Entry> entries;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  uint64_t data_begin = 0;  // offset of the data section in the file
};

// Largest header that is read, the limit of the format's other implementations.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

// Parses and checks the header of a whole file. `where` (the path) begins every error. Allocates no
// more than the header's own size suggests, whatever the numbers in it say.
Header parse_header(std::span<const std::byte> file, std::string_view where);

// Bytes of a tensor; throws Error naming `where` and the shape when its number of bits does not fit
// 63 bits or its elements do not fill whole bytes.
uint64_t tensor_bytes(ElementType dtype, std::span<const int64_t> shape, std::string_view where);

// The eight length bytes and the JSON, padded with spaces to a multiple of eight.
std::string format_header(std::span<const Entry> entries,
                          const std::map<std::string, std::string>& metadata);

}  // namespace rhea::safetensors
