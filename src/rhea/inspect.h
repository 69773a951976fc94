// `rhea inspect`: what a file or folder of weights holds, and what is wrong with it.
#pragma once
#include <filesystem>
#include <iosfwd>

namespace rhea {

struct InspectOptions {
  std::filesystem::path path;  // .safetensors or .gguf, a Hugging Face folder, a step folder
  bool tensors = true;         // list every tensor, not only the sums
};

// Prints kind, metadata, tensors with type, shape and bytes, sums by type, and the problems found.
// Returns whether there were none. Throws Error for what cannot be read at all.
bool inspect(const InspectOptions& options, std::ostream& out);

}  // namespace rhea
