#include "rhea/components/checkpoint/step_folder.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/base/mapped_file.h"
#include "rhea/base/output_folder.h"
#include "rhea/components/checkpoint/manifest.h"
#include "rhea/components/checkpoint/peft.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || fmt::format("{}", value) != text)
    return std::nullopt;
  return value;
}

// 12 for "step-12"; names like "step-012" or "step-12-bak" are the user's own.
std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  return number(name.substr(kPrefix.size()));
}

// True for a temporary of a step folder unless a process of this host is using it.
bool is_stale(std::string_view name) {
  const auto found = parse_temporary(name);
  return found && step_of(found->of) && !found->is_in_use;
}

}  // namespace

StepFolder inspect_step_folder(const fs::path& path) {
  StepFolder found;
  found.path = path;
  const fs::path manifest_path = path / kManifestName;
  if (!fs::exists(manifest_path)) {
    const bool published = safetensors::Weights::exist(path) || is_peft_folder(path);
    found.content = published ? StepFolder::Content::hf : StepFolder::Content::incomplete;
    return found;
  }
  found.content = StepFolder::Content::damaged;
  try {
    const Manifest manifest =
        parse_manifest(MappedFile(manifest_path).text(), manifest_path.string());
    for (const auto& [name, size] : manifest.files) {
      const fs::path file = path / name;
      if (!fs::exists(file)) throw Error("{} is missing", file.string());
      if (const uint64_t have = fs::file_size(file); have != size)
        throw Error("{} has {} bytes, {} lists {}", file.string(), have, kManifestName, size);
    }
    found.step = manifest.step;
    found.content = manifest.kind == Manifest::Kind::full ? StepFolder::Content::full
                                                          : StepFolder::Content::model_only;
  } catch (const std::exception& error) {
    found.problem = error.what();
  }
  return found;
}

std::vector<StepFolder> list_step_folders(const fs::path& folder) {
  std::vector<StepFolder> found;
  std::error_code absent;
  for (const auto& item : fs::directory_iterator(folder, absent)) {
    const auto step = step_of(item.path().filename().native());
    if (!step || !item.is_directory()) continue;
    StepFolder step_folder = inspect_step_folder(item.path());
    const bool readable = step_folder.content == StepFolder::Content::full ||
                          step_folder.content == StepFolder::Content::model_only;
    if (readable && step_folder.step != *step) {
      step_folder.problem = fmt::format("{} says that it is step {}",
                                        (item.path() / kManifestName).string(), step_folder.step);
      step_folder.content = StepFolder::Content::damaged;
    }
    step_folder.step = *step;
    found.push_back(std::move(step_folder));
  }
  std::sort(found.begin(), found.end(),
            [](const StepFolder& a, const StepFolder& b) { return a.step < b.step; });
  return found;
}

void require_space(const fs::path& folder, uint64_t needed, std::string_view remedy) {
  fs::path existing = folder;
  while (!fs::exists(existing) && existing.has_parent_path() && existing != existing.parent_path())
    existing = existing.parent_path();
  std::error_code unknown;
  const auto space = fs::space(existing.empty() ? "." : existing, unknown);
  if (unknown || space.available >= needed) return;
  throw ExitError(ExitCode::out_of_memory,
                  fmt::format("not enough disk space for {}: {} bytes needed, {} free; nothing was "
                              "written. {}",
                              folder.string(), needed, space.available, remedy));
}

void remove_stale_temporaries(const fs::path& folder) {
  std::error_code absent;
  std::vector<fs::path> stale;
  for (const auto& item : fs::directory_iterator(folder, absent)) {
    if (is_stale(item.path().filename().native())) stale.push_back(item.path());
  }
  for (const fs::path& path : stale) {
    std::error_code error;
    fs::remove_all(path, error);
    if (error)
      log::warning("checkpoint", "cannot remove {}: {}", path.string(), error.message());
    else
      log::info("checkpoint", "Removed {}, which an interrupted save left.", path.string());
  }
}

}  // namespace rhea::checkpoint
