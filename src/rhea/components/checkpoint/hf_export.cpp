// Native parameters into a Hugging Face folder.
#include <fmt/ranges.h>

#include <cstring>
#include <optional>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/components/checkpoint/adapters.h"
#include "rhea/components/checkpoint/config_spelling.h"
#include "rhea/components/checkpoint/hf_folder.h"
#include "rhea/components/checkpoint/hf_rows.h"
#include "rhea/components/checkpoint/hf_weights.h"
#include "rhea/components/checkpoint/step_writer.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea::checkpoint {
namespace {

namespace fs = std::filesystem;
using safetensors::TensorSource;

// One part of one parameter, made when its turn comes.
TensorSource source_of(const NamedTensor& stored, const HfPart& part, DType wanted,
                       const std::optional<AdapterSet::Entry>& adapter) {
  const DType dtype = export_dtype(part.name, stored.dtype, wanted);
  const HfRows rows(part, stored.name, stored.num_bytes(), dtype_size(stored.dtype));
  auto write = [stored, part, dtype, rows, adapter](const safetensors::Sink& sink) {
    NamedTensor tensor = stored;
    std::vector<std::byte> merged;
    if (adapter) {
      merged.assign(stored.bytes().begin(), stored.bytes().end());
      tensor.data = merged.data();
      merge_adapter(*adapter, tensor);
    }
    std::span<const std::byte> native = tensor.bytes();
    std::vector<std::byte> picked;
    if (part.rows.empty()) require_finite(tensor);
    if (!part.rows.empty()) {
      picked.resize(static_cast<size_t>(rows.num_rows * rows.row_bytes));
      rows.for_each(part, [&](int64_t hf, int64_t row) {
        std::memcpy(picked.data() + hf * rows.row_bytes, native.data() + row * rows.row_bytes,
                    static_cast<size_t>(rows.row_bytes));
      });
      native = picked;
      require_finite({part.name, tensor.dtype, part.shape, picked.data()});
    }
    safetensors::write_converted(safetensors::element_type_of(tensor.dtype), native, dtype, sink);
  };
  return {{part.name, safetensors::element_type_of(dtype), part.shape}, std::move(write)};
}

std::vector<TensorSource> sources_of(std::span<const NamedTensor> tensors, const KeyMap& key_map,
                                     DType dtype) {
  std::vector<TensorSource> sources;
  const AdapterSet adapters(key_map.adapters, tensors);
  std::vector<std::string> without_key;
  for (const NamedTensor& tensor : tensors) {
    if (is_optimizer_state(tensor.name) || is_adapter(tensor.name)) continue;
    const auto parts = key_map.to_hf(tensor.name, tensor.shape);
    if (parts.empty()) without_key.push_back(tensor.name);
    for (const HfPart& part : parts)
      sources.push_back(source_of(tensor, part, dtype, adapters.of_weight(tensor.name)));
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

// The texts beside the weights; what is missing is said.
std::map<std::string, std::string> files_of(const HfAssets& assets, DType dtype) {
  const fs::path tokenizer = assets.tokenizer.empty() ? assets.folder : assets.tokenizer;
  auto files = tokenizer_files(tokenizer);
  if (files.empty())
    log::warning("checkpoint", "The export has no tokenizer files: {} has none.",
                 tokenizer.string());
  const bool own = !assets.config_json.empty();
  const std::string config = own ? assets.config_json : text_of(assets.folder, "config.json");
  if (config.empty())
    log::warning("checkpoint", "The export has no config.json: {} has none.",
                 assets.folder.string());
  else
    files["config.json"] = spell_config(
        config, own ? "the run's config.json" : (assets.folder / "config.json").string(),
        ConfigSpelling::v5, dtype);
  std::string generation = text_of(assets.folder, "generation_config.json");
  if (!generation.empty()) files["generation_config.json"] = std::move(generation);
  return files;
}

// The tensors as the folder has them, whose spelling is a habit and not content: weights there that
// cannot be read must not cost the export.
std::vector<TensorSource> spelled_like(const fs::path& assets, std::vector<TensorSource> sources) {
  try {
    return spell_like(sources, assets);
  } catch (const Error& error) {
    log::warning("checkpoint", "The export keeps the model's own names of tensors: {}",
                 error.what());
    return sources;
  }
}

}  // namespace

void export_hf(const fs::path& path, std::span<const NamedTensor> tensors, const KeyMap& key_map,
               const HfAssets& assets, DType dtype) {
  const fs::path& like = assets.weights.empty() ? assets.folder : assets.weights;
  HfFolder folder{.tensors = spelled_like(like, sources_of(tensors, key_map, dtype)),
                  .files = files_of(assets, dtype)};
  folder.shards.like = index_of(like);
  write_hf_folder(path, std::move(folder));
}

}  // namespace rhea::checkpoint
