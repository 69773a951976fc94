// Fuzz target: rows of JSON lines and plain text. Any bytes are a document or a problem with its
// place.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rhea/base/error.h"
#include "rhea/components/data/record.h"
#include "rhea/components/tokenizer/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rhea::data;
  const std::string_view record(reinterpret_cast<const char*>(data), size);
  for (const RecordKind kind :
       {RecordKind::json_line, RecordKind::text_block, RecordKind::text_file}) {
    Document document;
    parse_record({kind, "text"}, record, "fuzz", 1, document);
    RHEA_CHECK(document.text.empty() || document.problem.empty(), "both a text and a problem");
    RHEA_CHECK(rhea::tokenizer::find_invalid_utf8(document.text) == std::string_view::npos,
               "a text that is not UTF-8");
  }
  return 0;
}
