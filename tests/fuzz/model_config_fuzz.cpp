// Fuzz target: a published config.json. Any bytes give a decoder or an Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rhea/base/error.h"
#include "rhea/models/hf/config_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    rhea::models::hf::parse_config(text, "fuzz");
  } catch (const rhea::Error&) {
  }
  return 0;
}
