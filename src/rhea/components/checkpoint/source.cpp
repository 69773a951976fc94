// Choice of a step folder.
#include "rhea/components/checkpoint/source.h"

#include <fmt/ranges.h>

#include <vector>

#include "rhea/base/error.h"
#include "rhea/base/log.h"

namespace rhea::checkpoint {
namespace {

using Content = StepFolder::Content;
constexpr const char* kLog = "checkpoint";

bool resumable(const StepFolder& step) {
  return step.content == Content::full || (step.content == Content::model_only && step.step == 0);
}

// What the folder is, for a folder that is not resumable.
std::string reason(const StepFolder& step) {
  switch (step.content) {
    case Content::damaged:
      return "it is damaged: " + step.problem;
    case Content::model_only:
      return "it holds weights only";
    case Content::hf:
      return "it holds Hugging Face weights only";
    default:
      return "it has no manifest.json, so its save was never completed";
  }
}

std::string how_to_use(const StepFolder& step) {
  return fmt::format(
      "to start a new run from these weights use --checkpoint.initial_load_path {}{}",
      std::filesystem::absolute(step.path).string(),
      step.content == Content::hf ? " --checkpoint.initial_load_in_hf"
                                  : " and another dump_folder");
}

StepFolder exact_step(const std::vector<StepFolder>& steps, const std::filesystem::path& folder,
                      int64_t wanted) {
  std::vector<int64_t> present;
  for (const StepFolder& step : steps) {
    if (step.step == wanted && resumable(step)) return step;
    if (step.step == wanted && step.content == Content::damaged)
      throw Error("checkpoint.load_step {}: {} cannot be loaded, {}.{}", wanted, step.path.string(),
                  reason(step), previous_step_advice(folder, wanted));
    if (step.step == wanted)
      throw Error("checkpoint.load_step {}: {} cannot be resumed, {}; {}", wanted,
                  step.path.string(), reason(step), how_to_use(step));
    if (resumable(step)) present.push_back(step.step);
  }
  throw Error(
      "checkpoint.load_step {}: {} holds no complete checkpoint of that step; steps present: {}",
      wanted, folder.string(),
      present.empty() ? "none" : fmt::format("{}", fmt::join(present, ", ")));
}

}  // namespace

std::string previous_step_advice(const std::filesystem::path& folder, int64_t damaged) {
  std::optional<int64_t> previous;
  for (const StepFolder& step : list_step_folders(folder)) {
    if (step.step < damaged && resumable(step)) previous = step.step;
  }
  if (!previous)
    return fmt::format(
        " No older complete checkpoint is left; remove or repair step-{} to start anew.", damaged);
  return fmt::format(
      " The one before is whole: go on from it with --checkpoint.load_step {}, or remove step-{}.",
      *previous, damaged);
}

std::optional<StepFolder> find_resume_step(const std::filesystem::path& folder, int64_t load_step,
                                           bool has_initial_load) {
  const std::vector<StepFolder> steps = list_step_folders(folder);
  if (load_step != -1) {
    StepFolder step = exact_step(steps, folder, load_step);
    if (steps.back().step > load_step)
      log::warning(kLog,
                   "{} also holds steps up to {}; they are replaced as this run reaches them, and "
                   "a start without load_step takes the "
                   "highest.",
                   folder.string(), steps.back().step);
    return step;
  }
  const StepFolder* weights_only = nullptr;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (resumable(*step)) return *step;
    if (step->content == Content::damaged)
      throw Error("{} cannot be loaded, {}.{}", step->path.string(), reason(*step),
                  previous_step_advice(folder, step->step));
    log::info(kLog, "Skipping {}: {}, {}.", step->path.string(), reason(*step),
              step->content == Content::incomplete ? "nothing is read from it" : how_to_use(*step));
    if (step->content == Content::model_only) weights_only = &*step;
  }
  if (weights_only != nullptr && !has_initial_load)
    throw Error("{} cannot be resumed: {}, without optimizer, schedule and data position; {}",
                weights_only->path.string(), reason(*weights_only), how_to_use(*weights_only));
  return std::nullopt;
}

void check_initial_source(const std::filesystem::path& path, bool model_only) {
  const StepFolder found = inspect_step_folder(path);
  switch (found.content) {
    case Content::full:
      return;
    case Content::model_only:
      if (model_only) return;
      throw Error(
          "initial_load_path {} holds weights only, but initial_load_model_only=False asks for "
          "optimizer and step too",
          path.string());
    case Content::damaged:
      throw Error("initial_load_path {} cannot be loaded, {}", path.string(), reason(found));
    case Content::hf:
      throw Error(
          "initial_load_path {} holds Hugging Face weights; read them with "
          "--checkpoint.initial_load_in_hf",
          path.string());
    case Content::incomplete:
      break;
  }
  std::vector<std::string> names;
  for (const StepFolder& step : list_step_folders(path))
    names.push_back(step.path.filename().string());
  if (!names.empty())
    throw Error("initial_load_path {} is a folder of checkpoints; name one of them: {}",
                path.string(), fmt::join(names, ", "));
  throw Error("initial_load_path {} holds no checkpoint (no manifest.json)", path.string());
}

}  // namespace rhea::checkpoint
