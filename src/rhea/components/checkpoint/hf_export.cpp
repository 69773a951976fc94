// Native parameters into a Hugging Face folder.
#include <fmt/ranges.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json_depth.h"
#include "rhea/base/log.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/checkpoint/hf_rows.h"
#include "rhea/components/checkpoint/hf_weights.h"
#include "rhea/components/checkpoint/step_folder.h"
#include "rhea/components/checkpoint/step_writer.h"
#include "rhea/components/safetensors/export.h"

namespace rhea::checkpoint {
namespace {

namespace fs = std::filesystem;
using safetensors::TensorSource;

constexpr const char* kTokenizerFiles[] = {"tokenizer.json",
                                           "tokenizer_config.json",
                                           "special_tokens_map.json",
                                           "added_tokens.json",
                                           "vocab.json",
                                           "merges.txt",
                                           "vocab.txt",
                                           "tokenizer.model",
                                           "chat_template.jinja"};

std::string_view long_name(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    default:
      return "float32";
  }
}

// One part of one parameter, made when its turn comes.
TensorSource source_of(const NamedTensor& tensor, const HfPart& part, DType export_dtype) {
  const DType dtype = is_float(tensor.dtype) ? export_dtype : tensor.dtype;
  const HfRows rows(part, tensor.name, tensor.num_bytes(), dtype_size(tensor.dtype));
  const auto fill = [tensor, part, dtype, rows](std::span<std::byte> out) {
    std::span<const std::byte> native = tensor.bytes();
    require_finite(tensor);
    std::vector<std::byte> picked;
    if (!part.rows.empty()) {
      picked.resize(static_cast<size_t>(rows.num_rows * rows.row_bytes));
      rows.for_each(part, [&](int64_t hf, int64_t row) {
        std::memcpy(picked.data() + hf * rows.row_bytes, native.data() + row * rows.row_bytes,
                    static_cast<size_t>(rows.row_bytes));
      });
      native = picked;
    }
    safetensors::convert(safetensors::element_type_of(tensor.dtype), native, dtype, out);
  };
  return {{part.name, safetensors::element_type_of(dtype), part.shape}, fill};
}

std::vector<TensorSource> sources_of(std::span<const NamedTensor> tensors, const KeyMap& key_map,
                                     DType dtype) {
  std::vector<TensorSource> sources;
  std::vector<std::string> without_key;
  for (const NamedTensor& tensor : tensors) {
    if (is_optimizer_state(tensor.name)) continue;
    const auto parts = key_map.to_hf(tensor.name, tensor.shape);
    if (parts.empty()) without_key.push_back(tensor.name);
    for (const HfPart& part : parts) sources.push_back(source_of(tensor, part, dtype));
  }
  if (!without_key.empty())
    log::warning("checkpoint", "Not in the export, because Hugging Face has no key for them: {}.",
                 fmt::join(without_key, ", "));
  return sources;
}

std::map<std::string, std::string> index_of(const fs::path& assets) {
  const fs::path index = assets / safetensors::kIndexName;
  if (assets.empty() || !fs::exists(index)) return {};
  try {
    return safetensors::read_index(index);
  } catch (const Error& error) {
    // The cut into shards is a habit, not content: an index that cannot be read must not cost the
    // export.
    log::warning("checkpoint", "The export does not follow a shard index: {}", error.what());
    return {};
  }
}

void write_config(const fs::path& folder, const HfAssets& assets, DType dtype) {
  const fs::path original = assets.folder / "config.json";
  std::string text = assets.config_json;
  if (text.empty() && !assets.folder.empty() && fs::exists(original)) text = read_file(original);
  if (text.empty()) {
    log::warning("checkpoint", "The export has no config.json: {} has none.",
                 assets.folder.string());
    return;
  }
  const std::string name = assets.config_json.empty() ? original.string() : "the run's config.json";
  check_json_depth(text, name);
  auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!json.is_object()) throw Error("{} is not a JSON object", name);
  if (json.contains("dtype")) json["dtype"] = long_name(dtype);  // newer spelling
  json["torch_dtype"] = long_name(dtype);
  json.erase("quantization_config");  // the export is not quantized, whatever was loaded
  write_file_atomic(folder / "config.json", json.dump(2) + "\n");
}

bool copy_if_there(const fs::path& from, const char* name, const fs::path& to) {
  if (from.empty() || !fs::exists(from / name)) return false;
  write_file_atomic(to / name, read_file(from / name));
  return true;
}

void copy_tokenizer(const fs::path& from, const fs::path& to) {
  bool any = false;
  if (fs::is_regular_file(from)) {
    write_file_atomic(to / "tokenizer.json", read_file(from));
    any = true;
  } else {
    for (const char* name : kTokenizerFiles) any = copy_if_there(from, name, to) || any;
  }
  if (!any)
    log::warning("checkpoint", "The export has no tokenizer files: {} has none.", from.string());
}

}  // namespace

void export_hf(const fs::path& path, std::span<const NamedTensor> tensors, const KeyMap& key_map,
               const HfAssets& assets, DType dtype) {
  std::vector<TensorSource> sources = sources_of(tensors, key_map, dtype);
  uint64_t needed = 1 << 20;
  for (const TensorSource& source : sources)
    needed +=
        safetensors::tensor_bytes(source.spec.dtype, source.spec.shape, source.spec.name) + 512;
  require_space(path.parent_path(), needed);
  make_step_folder(path, [&](const fs::path& temporary) {
    safetensors::ShardOptions options;
    options.like = index_of(assets.folder);
    safetensors::write_sharded(temporary, std::move(sources), options);
    write_config(temporary, assets, dtype);
    copy_if_there(assets.folder, "generation_config.json", temporary);
    copy_tokenizer(assets.tokenizer.empty() ? assets.folder : assets.tokenizer, temporary);
  });
}

}  // namespace rhea::checkpoint
