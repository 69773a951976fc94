// The files of a Hugging Face folder, and writing one whole.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/dtype.h"
#include "rhea/base/output_folder.h"
#include "rhea/components/checkpoint/step_folder.h"
#include "rhea/components/safetensors/export.h"

namespace rhea::checkpoint {

// dtype of a tensor, published or native, in an export to `wanted`: integers keep theirs, and
// biases that only choose experts keep float32, because their last steps are smaller than 16 bits
// resolve.
DType export_dtype(std::string_view name, DType stored, DType wanted);

// Texts by file name: the tokenizer files (with chat templates) of a folder, or one file by itself,
// a .json as tokenizer.json. Empty when there are none.
std::map<std::string, std::string> tokenizer_files(const std::filesystem::path& from);
// Text of a file of the folder; empty when there is none.
std::string text_of(const std::filesystem::path& folder, const char* name);

// Renames and joins `tensors` so that they are those of the weights in `like`: without the base
// model's prefix, experts in Mixtral's spelling or joined, where that folder has them so. Tensors
// that it lacks stay as they are; those without elements, which it has and no model asks for, are
// added.
std::vector<safetensors::TensorSource> spell_like(std::vector<safetensors::TensorSource> tensors,
                                                  const std::filesystem::path& like);

struct HfFolder {
  std::vector<safetensors::TensorSource> tensors;
  safetensors::ShardOptions shards = {};
  std::map<std::string, std::string> files;  // texts beside the weights
  Existing existing = Existing::replace;
  std::string_view full_disk_remedy = kCheckpointRemedy;
};

// Writes the folder atomically, after checking the space. Throws as make_folder and
// require_space do.
void write_hf_folder(const std::filesystem::path& path, HfFolder folder);

}  // namespace rhea::checkpoint
