// The step folders of a checkpoint folder: which there are, what each holds, their creation and
// removal.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace rhea::checkpoint {

struct StepFolder {
  enum class Content {
    full,        // resumable
    model_only,  // weights of a native model-only save or of a seed
    hf,          // no manifest, but Hugging Face weights
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

// Free bytes of the file system that holds `folder` (or will, when it is made). Throws ExitError
// with out_of_memory naming path, need and free bytes when fewer than `needed` are free.
void require_space(const std::filesystem::path& folder, uint64_t needed);

// Makes `path` atomically: `fill` writes into a temporary folder beside it, which is then synced
// and renamed. A folder that is already there is replaced in the same instant. When `fill` throws,
// the temporary is removed and nothing has changed.
void make_step_folder(const std::filesystem::path& path,
                      const std::function<void(const std::filesystem::path& temporary)>& fill);

// Removes what make_step_folder and remove_step_folder of dead processes left in `folder`.
void remove_stale_temporaries(const std::filesystem::path& folder);
// Removes a step folder so that it is never seen half removed. Does not follow links. Throws
// filesystem_error.
void remove_step_folder(const std::filesystem::path& path);

}  // namespace rhea::checkpoint
