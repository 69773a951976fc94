// Which folder a run starts from.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "rhea/components/checkpoint/step_folder.h"

namespace rhea::checkpoint {

// The step of the run's own folder to resume from: `load_step`, or the latest complete one for -1
// (a seed counts). Nothing when there is none, then a fresh or initial start follows. Folders that
// cannot be resumed are skipped with a log line. Throws Error when `load_step` is not there, when
// the newest checkpoint is damaged (and says which one is whole), and when there are only weights
// and no `has_initial_load`.
std::optional<StepFolder> find_resume_step(const std::filesystem::path& folder, int64_t load_step,
                                           bool has_initial_load);

// Throws Error unless `path` is a native step folder that holds what initial_load_path is to give.
void check_initial_source(const std::filesystem::path& path, bool model_only);

// How to go on when step `damaged` of `folder` is of no use; begins with a space.
std::string previous_step_advice(const std::filesystem::path& folder, int64_t damaged);

}  // namespace rhea::checkpoint
