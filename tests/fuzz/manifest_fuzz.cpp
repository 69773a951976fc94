// Fuzz target: manifest.json of a checkpoint. Any text is parsed or refused with an Error; the seal
// is made right first, else nothing behind it would ever be reached.
#include <cstddef>
#include <cstdint>
#include <string>

#include "rhea/base/error.h"
#include "rhea/components/checkpoint/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rhea::checkpoint;
  std::string text(reinterpret_cast<const char*>(data), size);
  text += "\n\"manifest_xxh64\": \"0000000000000000\"\n}\n";
  seal_manifest(text);
  try {
    const Manifest manifest = parse_manifest(text, "fuzz");
    const std::string again = format_manifest(manifest);
    RHEA_CHECK(format_manifest(parse_manifest(again, "fuzz")) == again,
               "the manifest does not read back");
  } catch (const rhea::Error&) {
  }
  return 0;
}
