// Writing weights as a Hugging Face folder: shards of limited size and their index, one tensor in
// memory at a time.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rhea/components/safetensors/writer.h"

namespace rhea::safetensors {

// Takes the next bytes of a tensor.
using Sink = std::function<void(std::span<const std::byte> bytes)>;

// A tensor that is made when it is written.
struct TensorSource {
  TensorSpec spec;
  // Gives the row-major bytes of the whole tensor, in pieces of any size.
  std::function<void(const Sink& sink)> write;
};

// Gives `bytes` of `from` to the sink as `to`, converted a megabyte at a time. After each piece
// `done`, if there is one, gets the bytes of `from` that were read.
void write_converted(ElementType from, std::span<const std::byte> bytes, DType to, const Sink& sink,
                     const Sink& done = nullptr);

struct ShardOptions {
  // A shard grows to this size at most, unless one tensor alone is larger.
  uint64_t max_shard_bytes = 5'000'000'000;
  // Tensor name to shard name of another folder's index: its grouping is used where it covers
  // exactly the tensors written and no group passes max_shard_bytes. Empty: tensors are cut in key
  // order.
  std::map<std::string, std::string> like = {};
};

// Writes `model.safetensors`, or `model-0000i-of-0000n.safetensors` with
// `model.safetensors.index.json`, into an existing folder. Links there are replaced, never written
// through. An index that would contradict a single file is removed.
void write_sharded(const std::filesystem::path& folder, std::vector<TensorSource> tensors,
                   const ShardOptions& options = {});

}  // namespace rhea::safetensors
