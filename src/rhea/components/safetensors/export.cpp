// Cutting a model into shards.
#include "rhea/components/safetensors/export.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"

namespace rhea::safetensors {
namespace {

using Shard = std::vector<TensorSource>;

uint64_t bytes_of(const TensorSpec& spec) {
  return tensor_bytes(spec.dtype, spec.shape, spec.name);
}

uint64_t bytes_of(const Shard& shard) {
  uint64_t sum = 0;
  for (const TensorSource& tensor : shard) sum += bytes_of(tensor.spec);
  return sum;
}

std::vector<Shard> cut_in_order(std::vector<TensorSource> tensors, uint64_t limit) {
  std::vector<Shard> shards;
  uint64_t used = 0;
  for (TensorSource& tensor : tensors) {
    const uint64_t bytes = bytes_of(tensor.spec);
    if (shards.empty() || (used + bytes > limit && used > 0)) {
      shards.emplace_back();
      used = 0;
    }
    used += bytes;
    shards.back().push_back(std::move(tensor));
  }
  if (shards.empty()) shards.emplace_back();
  return shards;
}

bool same_names(const std::vector<TensorSource>& tensors,
                const std::map<std::string, std::string>& like) {
  return tensors.size() == like.size() &&
         std::all_of(tensors.begin(), tensors.end(),
                     [&](const TensorSource& tensor) { return like.contains(tensor.spec.name); });
}

std::vector<Shard> cut(std::vector<TensorSource> tensors, const ShardOptions& options) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorSource& a, const TensorSource& b) { return a.spec.name < b.spec.name; });
  if (!options.like.empty() && same_names(tensors, options.like)) {
    std::map<std::string, Shard> groups;
    for (const TensorSource& tensor : tensors)
      groups[options.like.at(tensor.spec.name)].push_back(tensor);
    if (std::all_of(groups.begin(), groups.end(), [&](const auto& group) {
          return bytes_of(group.second) <= options.max_shard_bytes;
        })) {
      std::vector<Shard> shards;
      for (auto& [name, shard] : groups) shards.push_back(std::move(shard));
      return shards;
    }
  }
  return cut_in_order(std::move(tensors), options.max_shard_bytes);
}

void write_shard(const std::filesystem::path& path, const Shard& shard) {
  std::vector<TensorSpec> specs;
  for (const TensorSource& tensor : shard) specs.push_back(tensor.spec);
  // Other readers of the format ask for this entry before they load a file.
  Writer writer(path, specs, {{"format", "pt"}});
  for (size_t i = 0; i < shard.size(); ++i)
    shard[i].write([&](std::span<const std::byte> bytes) { writer.write(i, bytes); });
  writer.finish();
}

}  // namespace

void write_converted(ElementType from, std::span<const std::byte> bytes, DType to, const Sink& sink,
                     const Sink& done) {
  constexpr size_t kElements = 1 << 18;  // a multiple of what fills whole bytes in every type
  const size_t piece = kElements * static_cast<size_t>(element_bits(from)) / 8;
  const bool same = same_dtype(from) == to;
  std::vector<std::byte> converted;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    const auto part = bytes.subspan(at, std::min(piece, bytes.size() - at));
    if (!same) {
      const size_t count = part.size() * 8 / static_cast<size_t>(element_bits(from));
      converted.resize(count * static_cast<size_t>(dtype_size(to)));
      convert(from, part, to, converted);
    }
    sink(same ? part : std::span<const std::byte>(converted));
    if (done) done(part);
  }
}

void write_sharded(const std::filesystem::path& folder, std::vector<TensorSource> tensors,
                   const ShardOptions& options) {
  const std::vector<Shard> shards = cut(std::move(tensors), options);
  if (shards.size() == 1) {
    write_shard(folder / kSingleName, shards.front());
    std::filesystem::remove(folder / kIndexName);
    return;
  }
  nlohmann::json weight_map = nlohmann::json::object();
  uint64_t total_size = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    write_shard(folder / name, shards[i]);
    for (const TensorSource& tensor : shards[i]) weight_map[tensor.spec.name] = name;
    total_size += bytes_of(shards[i]);
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total_size}}},
                                {"weight_map", weight_map}};
  write_file_atomic(folder / kIndexName, index.dump(2) + "\n");
}

}  // namespace rhea::safetensors
