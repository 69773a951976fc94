// Native parameters from and to a Hugging Face folder, through the model's key map.
#pragma once
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rhea/base/dtype.h"
#include "rhea/components/checkpoint/key_map.h"
#include "rhea/components/checkpoint/named_tensor.h"

namespace rhea {
class ThreadPool;
}

namespace rhea::checkpoint {

// Called before anything is written, with the targets that a load does not fill, or fills in part:
// gives them the values that they keep where nothing is read into them.
using Initialise = std::function<void(const std::vector<std::string>& names)>;

struct ImportOptions {
  // False: what the files lack keeps its values, tensors that the model lacks are left; both are
  // listed in the result. Of a target that is published in parts, those that are there are read.
  bool strict = true;
  // Reads several tensors at once. Null: one after the other.
  ThreadPool* pool = nullptr;
  // Null: the targets have these values already.
  Initialise initialise = nullptr;
};

struct ImportResult {
  int64_t num_tensors = 0;                 // stored tensors that were read, scales not counted
  int64_t num_elements = 0;                // of the targets that were filled
  int64_t num_fp8 = 0;                     // of the tensors in FP8 blocks
  int64_t num_mxfp4 = 0;                   // and in MXFP4
  std::vector<std::string> skipped = {};   // KeyMap::ignorable: tables, layers that are not trained
  std::vector<std::string> left_out = {};  // "name: why", of a load that is not strict
  // Targets that Hugging Face has no key for, adapters left out: they keep their values.
  std::vector<std::string> without_key = {};
  std::vector<std::string> absent = {};  // all targets that were not filled whole
};

// Fills `targets` (model parameters only) from the weights in `folder`, converted with one
// rounding. The folder may leave out the prefix of the base model, keep experts one by one or
// joined, and keep weights in FP8 blocks or MXFP4 (see stored_weights.h). Strict: throws Error
// listing every key that is missing, unexpected or of another shape; tied copies must be equal.
// Memory besides the targets: the tensors in work, one for each thread.
ImportResult import_hf(const std::filesystem::path& folder, const KeyMap& key_map,
                       std::span<const NamedTensor> targets, const ImportOptions& options = {});

// The comparison alone: throws as a strict import would, reads and writes no values.
void compare_hf(const std::filesystem::path& folder, const KeyMap& key_map,
                std::span<const NamedTensor> targets);

// What an export holds besides weights: config.json (`config_json`, or the file of `folder` when
// that is empty) with its dtype set, generation_config.json of `folder`, and the tokenizer files of
// `tokenizer` (a folder or a tokenizer.json; empty: of `folder`). Tensors are named and cut into
// shards as in `weights` (empty: `folder`), where that holds any.
struct HfAssets {
  std::filesystem::path folder;
  std::filesystem::path weights = {};
  std::filesystem::path tokenizer = {};
  std::string config_json = {};
};

// Writes the model parameters among `tensors` as folder `path`, atomically; floats in `dtype`.
// Adapters of the key map are merged into the weights that they belong to.
// Parameters without a Hugging Face key are listed in a warning. Throws as write_step does.
void export_hf(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
               const KeyMap& key_map, const HfAssets& assets, DType dtype);

}  // namespace rhea::checkpoint
