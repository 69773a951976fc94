// Checkpoints of a run: when to save, what to load, what to keep.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rhea/components/checkpoint/hf_weights.h"
#include "rhea/components/checkpoint/key_map.h"
#include "rhea/components/checkpoint/named_tensor.h"
#include "rhea/config/sections/checkpoint.h"

namespace rhea {
class ThreadPool;
}

namespace rhea::checkpoint {

// Where a run reads and writes, and what goes into an export besides weights.
struct RunFolders {
  std::filesystem::path dump_folder;
  std::filesystem::path hf_assets_path;
  // Folder or tokenizer.json of the run's tokenizer; empty: hf_assets_path.
  std::filesystem::path tokenizer = {};
  // config.json of an export; empty: the one of hf_assets_path.
  std::string hf_config_json = {};
};

// What load() found. `step` is the last finished step (0 for a fresh start); `state` holds the
// parts that were saved and not excluded.
struct Loaded {
  enum class Source { fresh, resumed, initial };
  Source source = Source::fresh;
  int64_t step = 0;
  StateMap state = {};
  std::filesystem::path path = {};
  int64_t num_tensors = 0;   // model tensors that were read, as the source has them
  int64_t num_elements = 0;  // of them
  // Parameters that the source lacks, whole or in part, though it was taken: there they start as in
  // a fresh run. Of published weights load() has drawn them (Initialise), others are still to be.
  std::vector<std::string> absent = {};
  bool absent_is_drawn = false;
};

enum class SaveReason {
  interval,  // also step 1 when the options ask for it
  signal,    // or wall time: a full checkpoint unless save_on_signal is off
  data_end,  // the data ran out before the last step: a full checkpoint
  last       // the last step: full, model-only or Hugging Face as the options say
};

// One per run and process. With `enable` off every call is a no-op. Errors are Error; a full disk
// is ExitError with out_of_memory, weights that are not finite ExitError with non_finite; in both
// cases nothing was written and older checkpoints are intact.
class Checkpointer {
 public:
  // Claims the folder (FolderClaim) unless nothing is saved, and removes temporaries that dead runs
  // left. `key_map` serves initial_load_in_hf and last_save_in_hf; `pool`, if there is one, reads
  // several published tensors at once.
  Checkpointer(const CheckpointConfig& config, RunFolders folders,
               KeyMap key_map = identity_key_map(), ThreadPool* pool = nullptr);
  // Waits for the background writer.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Fills `tensors` (model and optimizer state) from the run's own folder, initial_load_path or
  // hf_assets_path, in this order; logs which. A fresh start leaves them as they are. Waits for a
  // save under way. `initialise` as ImportOptions has it, for published weights.
  Loaded load(std::span<const NamedTensor> tensors, const Initialise& initialise = nullptr);

  // True when save() at this step would write, so that the caller gathers state only then.
  bool due(int64_t step, SaveReason reason) const;
  // Writes step-`step` if due; returns whether it did. With async_mode, tensors are copied and the
  // call returns while they are written; it first waits for the save before, and throws its error.
  // The last save is always complete on return.
  bool save(int64_t step, std::span<const NamedTensor> tensors, const StateMap& state,
            SaveReason reason);
  // Whether the last save of a finished run lacks the weights that the options ask for beside the
  // full checkpoint.
  bool lacks_last_weights(int64_t step) const;
  // The seed checkpoint: weights only, step-0.
  void save_seed(std::span<const NamedTensor> tensors, const StateMap& state);

  // Throws the error of the background writer, if it had one. Call once a step.
  void poll();
  // Waits for the background writer and throws its error.
  void wait();

  // Folder of the newest complete checkpoint, for messages.
  std::optional<std::filesystem::path> latest() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhea::checkpoint
