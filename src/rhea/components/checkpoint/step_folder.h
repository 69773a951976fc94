// The step folders of a checkpoint folder: which there are, and what each holds.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rhea::checkpoint {

struct StepFolder {
  enum class Content {
    full,        // resumable
    model_only,  // weights of a native model-only save or of a seed
    hf,          // no manifest, but Hugging Face weights or PEFT adapters
    incomplete,  // no manifest, no weights
    damaged  // a manifest that cannot be read, or files that differ from it: `problem` says which
  };
  int64_t step = 0;
  std::filesystem::path path;
  Content content = Content::incomplete;
  std::string problem;
};

// Every folder named step-<number>, by number. An absent folder has none.
std::vector<StepFolder> list_step_folders(const std::filesystem::path& folder);
// The same for one folder, whatever its name.
StepFolder inspect_step_folder(const std::filesystem::path& path);

// What a message about a full disk advises, of a run's own checkpoints and of other folders.
constexpr std::string_view kCheckpointRemedy =
    "Free space, lower checkpoint.keep_latest_k, or put checkpoint.folder on another disk";
constexpr std::string_view kFolderRemedy = "Free space, or name a folder on another disk";

// Throws ExitError with out_of_memory naming path, need and free bytes when fewer than `needed`
// bytes are free on the file system that holds `folder` (or will, when it is made).
void require_space(const std::filesystem::path& folder, uint64_t needed, std::string_view remedy);

// Removes what make_folder and remove_folder of dead processes and of other hosts left of step
// folders in `folder`.
void remove_stale_temporaries(const std::filesystem::path& folder);

}  // namespace rhea::checkpoint
