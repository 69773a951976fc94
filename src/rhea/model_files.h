// Where a model that `rhea generate` and `rhea score` are given lies, and what its files say.
#pragma once
#include <filesystem>
#include <string>

#include "rhea/components/tokenizer/tokenizer.h"

namespace rhea {

// A folder with weights: of Hugging Face files, or a checkpoint of our own.
struct ModelFolder {
  std::filesystem::path path;
  bool is_native = false;
  std::string config_json;  // text in Hugging Face's fields
  std::string config_name;  // where it comes from, for messages
  std::string family;       // of a native checkpoint: whose names its tensors have
  std::filesystem::path tokenizer;
  std::filesystem::path assets;  // where the files beside the weights are, generation_config.json
  // Of a native checkpoint: the published folder that its weights were taken from, as the run that
  // did so names it; it may be gone. Empty: none.
  std::filesystem::path base = {};
};

// A folder of PEFT: adapters without a model.
bool is_adapter_folder(const std::filesystem::path& folder);

// Throws Error for a folder that is neither, naming the checkpoints below it where there are some,
// and what to do with adapters.
ModelFolder find_model(const std::filesystem::path& folder);

// check_output_file, and Error for a file in the folder of a model or checkpoint: it would replace
// weights there, or be read as some.
void check_result_file(const std::filesystem::path& file);

// One line when config.json or generation_config.json of `folder` name other ends of text than the
// tokenizer, which is the one that counts; else empty.
std::string eos_disagreement(const tokenizer::Tokenizer& tokenizer,
                             const std::filesystem::path& folder);

}  // namespace rhea
