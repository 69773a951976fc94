// Fuzz target: a GGUF file, its model and its tokenizer. Any bytes are parsed or refused with an
// Error.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>

#include "rhea/base/error.h"
#include "rhea/components/gguf/published.h"

namespace {

// A file of this process, because a model reads from a map.
const std::filesystem::path& scratch_file() {
  static const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("rhea_gguf_fuzz_{}.gguf", ::getpid());
  return path;
}

void read_model(std::span<const std::byte> bytes) {
  std::ofstream(scratch_file(), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const rhea::gguf::File file(scratch_file());
  std::filesystem::remove(scratch_file());
  rhea::gguf::published_files(file);
  for (const auto& tensor : rhea::gguf::published_tensors(file)) {
    int64_t count = 1;
    for (const int64_t dim : tensor.shape) count *= dim;
    std::vector<std::byte> out(static_cast<size_t>(count) * 2);
    tensor.read(rhea::DType::bf16, out);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const rhea::gguf::Header header = rhea::gguf::parse(bytes, "fuzz");
    for (const auto& tensor : header.tensors) {
      const auto offset = tensor.blocks.data() - bytes.data();
      RHEA_CHECK(tensor.blocks.empty() ||
                     (offset >= 0 && offset + static_cast<std::ptrdiff_t>(tensor.blocks.size()) <=
                                         static_cast<std::ptrdiff_t>(size)),
                 "'{}' lies outside the file", tensor.name);
    }
    read_model(bytes);
  } catch (const rhea::Error&) {
  }
  return 0;
}
