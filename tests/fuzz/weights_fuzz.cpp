// Fuzz target: a Hugging Face folder as a model asks for it: experts joined and not, FP8 blocks,
// MXFP4, names without prefix. Any bytes are read or refused with an Error.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "rhea/base/error.h"
#include "rhea/components/checkpoint/hf_weights.h"

namespace {

namespace fs = std::filesystem;

// Removed when the process ends.
struct Scratch {
  fs::path folder = fs::temp_directory_path() / fmt::format("rhea_weights_fuzz_{}", ::getpid());
  Scratch() { fs::create_directories(folder); }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using rhea::DType;
  static const Scratch scratch;
  std::ofstream(scratch.folder / "model.safetensors", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  static std::vector<float> memory(1 << 12);
  const std::vector<rhea::checkpoint::NamedTensor> targets = {
      {"model.w.weight", DType::f32, {3, 2}, memory.data()},
      {"model.blocks", DType::bf16, {1, 32, 2}, memory.data()},
      {"model.mlp.experts.gate_up_proj", DType::f32, {2, 4, 3}, memory.data()},
      {"model.mlp.experts.0.down_proj.weight", DType::f32, {3, 2}, memory.data()},
      {"model.mlp.experts.1.down_proj.weight", DType::f32, {3, 2}, memory.data()}};
  for (const bool strict : {true, false}) {
    try {
      rhea::checkpoint::import_hf(scratch.folder, rhea::checkpoint::identity_key_map(), targets,
                                  {.strict = strict});
    } catch (const rhea::Error&) {
    }
  }
  return 0;
}
