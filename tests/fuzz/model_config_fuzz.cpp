// Fuzz target: a published config.json. Any bytes give sizes or an Error; sizes of a small model
// give a model.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rhea/base/error.h"
#include "rhea/models/hf/config_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto published = rhea::models::hf::parse_config(text, "fuzz");
    if (published.sizes.n_layers <= 64) rhea::models::hf::build(published);
  } catch (const rhea::Error&) {
  }
  return 0;
}
