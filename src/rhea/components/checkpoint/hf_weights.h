// Native parameters from and to a Hugging Face folder, through the model's key map.
#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "rhea/base/dtype.h"
#include "rhea/components/checkpoint/key_map.h"
#include "rhea/components/checkpoint/named_tensor.h"

namespace rhea::checkpoint {

// Fills `targets` (model parameters only) from the weights in `folder`, converted with one
// rounding. FP8 blocks with their `_scale_inv` are recognised. Strict: throws Error listing every
// key that is missing, unexpected or of another shape; tied copies must be equal. Returns how many
// tensors were FP8 blocks.
int import_hf(const std::filesystem::path& folder, const KeyMap& key_map,
              std::span<const NamedTensor> targets);

// What an export holds besides weights: config.json (`config_json`, or the file of `folder` when
// that is empty) with its torch_dtype set, generation_config.json of `folder`, which also lends its
// shard index, and the tokenizer files of `tokenizer` (a folder or a tokenizer.json; empty: of
// `folder`).
struct HfAssets {
  std::filesystem::path folder;
  std::filesystem::path tokenizer = {};
  std::string config_json = {};
};

// Writes the model parameters among `tensors` as folder `path`, atomically; floats in `dtype`.
// Parameters without a Hugging Face key are listed in a warning. Throws as write_step does.
void export_hf(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
               const KeyMap& key_map, const HfAssets& assets, DType dtype);

}  // namespace rhea::checkpoint
