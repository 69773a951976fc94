// LoRA adapters alone, in the files and names of Hugging Face's PEFT.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "rhea/base/dtype.h"
#include "rhea/components/checkpoint/adapters.h"
#include "rhea/components/checkpoint/key_map.h"
#include "rhea/components/checkpoint/named_tensor.h"

namespace rhea::checkpoint {

inline constexpr const char* kAdapterFile = "adapter_model.safetensors";
inline constexpr const char* kAdapterConfigFile = "adapter_config.json";

// True where one of the two files is there.
bool is_peft_folder(const std::filesystem::path& path);

// Writes the adapters among `tensors` as a folder that PEFT loads: adapter_model.safetensors,
// floats in `dtype`, and adapter_config.json, which names `base_model`, the published model whose
// weights the adapters belong to; empty: it names none (null), and a warning says so. Atomic;
// throws as write_step does.
void export_adapters(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                     const KeyMap& key_map, const std::string& base_model, DType dtype);

// Fills the adapters among `tensors` from such a folder and returns how many matrices it read.
// Strict: throws Error listing what is missing, unexpected or of another shape, and for another
// rank or alpha than the run's.
int64_t import_adapters(const std::filesystem::path& folder, std::span<const NamedTensor> tensors,
                        const KeyMap& key_map);

// The adapters of such a folder under the published names of their modules, in f32.
struct PublishedAdapters {
  std::vector<std::vector<float>> memory;  // of the tensors of `set`
  AdapterSet set;
  std::string base_model;  // as the folder names it; may be a folder or a name of a hub, or empty
};
// Throws Error naming the file and what in it is not plain LoRA of linear layers.
PublishedAdapters read_published_adapters(const std::filesystem::path& folder);

}  // namespace rhea::checkpoint
