// What `rhea convert` reads: a model under published names, in whatever form it lies on the disk.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rhea/components/checkpoint/key_map.h"
#include "rhea/components/safetensors/export.h"
#include "rhea/convert.h"
#include "rhea/model_files.h"

namespace rhea {

struct ConvertSource {
  std::vector<safetensors::TensorSource> tensors;  // they borrow from `keep`
  // Texts by file name: config.json in its own spelling, generation config, tokenizer.
  std::map<std::string, std::string> files = {};
  std::string config_name;  // where config.json comes from, for messages
  std::map<std::string, std::string> shards_like = {};
  // Whose weights these are: of Hugging Face's files, which may spell or code what the model asks
  // for otherwise. Empty for other inputs.
  std::filesystem::path hf_folder = {};
  // The metadata of a GGUF file lacks fields that a published config.json has.
  bool is_gguf = false;
  std::shared_ptr<const void> keep = {};

  // The texts of `folder`, in place of those that are there.
  void take_files(const std::filesystem::path& folder);
};

// The names that the tensors of a native checkpoint have in published files.
checkpoint::KeyMap published_names(const ModelFolder& files);

// Opens options.from. Throws Error naming what is wrong with it.
ConvertSource open_source(const ConvertOptions& options);

}  // namespace rhea
