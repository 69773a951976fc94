// manifest.json of a step folder: which tensor lies where, in how many pieces, with which
// checksums.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/components/checkpoint/named_tensor.h"

namespace rhea::checkpoint {

// A box of a tensor in one data file.
struct Chunk {
  std::vector<int64_t> offset;
  std::vector<int64_t> shape;
  std::string file;
  uint64_t begin = 0;  // bytes of the file, row-major
  uint64_t end = 0;
  // One for each kChecksumBlock bytes, so that a slice can be verified alone.
  std::vector<uint64_t> checksums;
};
inline constexpr uint64_t kChecksumBlock = 16 << 20;

struct StoredTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;  // of the whole tensor
  std::vector<Chunk> chunks;
};

struct Manifest {
  enum class Kind { full, model_only };
  Kind kind = Kind::full;
  int64_t step = 0;
  std::map<std::string, uint64_t> files;  // name and size of every data file
  std::map<std::string, StoredTensor> tensors;
  StateMap state;
};

inline constexpr const char* kManifestName = "manifest.json";

// The text, one tensor a line, with a checksum of itself at the end.
std::string format_manifest(const Manifest& manifest);
// Inverse. Throws Error that begins with `where`: not JSON, a flipped bit, fields that contradict
// each other.
Manifest parse_manifest(std::string_view text, std::string_view where);
// Replaces the checksum at the end of `text` by the right one (also how tests make manifests that
// lie).
void seal_manifest(std::string& text);

}  // namespace rhea::checkpoint
