// Fuzz target: tokenizer.json, tokenizer.model and tiktoken files. Any bytes make a tokenizer or an
// Error; a tokenizer that was made encodes and decodes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/components/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  rhea::log::set_enabled(false);  // thousands of warnings say nothing
  try {
    const auto tokenizer = rhea::tokenizer::parse_tokenizer(text, "", "fuzz");
    const auto ids =
        tokenizer->encode("ab a, 12\xc3\xa9 <s>\n\r\xef\xac\x81", {.truncate_and_pad = true});
    for (const int32_t id : ids)
      RHEA_CHECK(id >= 0 && id < tokenizer->vocab_size(), "id {} of {}", id,
                 tokenizer->vocab_size());
    tokenizer->decode(ids);
  } catch (const rhea::Error&) {
  }
  return 0;
}
