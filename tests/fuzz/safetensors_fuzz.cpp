// Fuzz target: header of a safetensors file. Any bytes are parsed or refused with an Error.
#include <cstddef>
#include <cstdint>
#include <span>

#include "rhea/base/error.h"
#include "rhea/components/safetensors/header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const rhea::safetensors::Header header = rhea::safetensors::parse_header(bytes, "fuzz");
    for (const auto& entry : header.entries) {
      RHEA_CHECK(entry.begin <= entry.end && header.data_begin + entry.end <= size,
                 "'{}' lies outside the file", entry.name);
      RHEA_CHECK(rhea::safetensors::tensor_bytes(entry.dtype, entry.shape, "fuzz") ==
                     entry.end - entry.begin,
                 "'{}' has another size than its type and shape", entry.name);
    }
    // What was read is written in a form that reads back.
    rhea::safetensors::format_header(header.entries, header.metadata);
  } catch (const rhea::Error&) {
  }
  return 0;
}
