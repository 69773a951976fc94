// `rhea convert`: a model from one form on the disk into another.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "rhea/base/dtype.h"
#include "rhea/components/checkpoint/config_spelling.h"

namespace rhea {

struct ConvertOptions {
  // A Hugging Face folder, a step folder of `rhea train`, a .gguf file, or a folder of PEFT, whose
  // adapters are merged into their base model.
  std::filesystem::path from;
  std::filesystem::path to;  // a folder that does not exist yet, or is empty
  enum class Format { hf, native };
  Format format = Format::hf;
  // Of floats; absent: as they are stored (of a GGUF file float32; of FP8 and MXFP4 bfloat16).
  std::optional<DType> export_dtype;
  // Where config.json and tokenizer come from instead of `from`. They must be of the same model. Of
  // adapters: the folder of the base model, if the one that they name is not at hand.
  std::filesystem::path hf_assets_path;
  checkpoint::ConfigSpelling spelling = checkpoint::ConfigSpelling::v5;
  uint64_t max_shard_bytes = 5'000'000'000;
  // Of a native checkpoint with LoRA adapters: these alone, as PEFT stores them. Off: they are
  // merged into the weights.
  bool only_adapters = false;
  // Model family whose names a native checkpoint has; empty: Hugging Face's.
  std::string module;
};

// Writes the folder `to` atomically, one tensor in memory at a time (Format::native: the model
// once). Tensors whose dtype does not change keep their bytes. Throws Error naming what is wrong
// with the input, before anything is written: what `rhea score` would refuse is refused here, by
// the same check. `to` must not hold anything. What a killed convert left beside `to` is removed.
void convert(const ConvertOptions& options);

// "5GB", "500MB", "2GiB", "1000000": a number of bytes. Throws Error naming the text.
uint64_t parse_size(std::string_view text);

}  // namespace rhea
