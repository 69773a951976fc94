#include "rhea/model_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/base/output_file.h"
#include "rhea/components/checkpoint/base_model.h"
#include "rhea/components/checkpoint/manifest.h"
#include "rhea/components/checkpoint/peft.h"
#include "rhea/components/checkpoint/step_folder.h"
#include "rhea/components/checkpoint/step_reader.h"
#include "rhea/components/gguf/file.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

ModelFolder native_checkpoint(const fs::path& folder) {
  const checkpoint::StepReader reader(folder);
  const auto& state = reader.manifest().state;
  const auto config = state.find("config"), published = state.find("hf_config");
  if (config == state.end() || published == state.end())
    throw Error(
        "{} does not say which model it holds; resume its run with the same options and "
        "--checkpoint.last_save_in_hf, which writes the model to export/step-{}",
        folder.string(), reader.manifest().step);
  const json run = parse_json_or_discard(config->second);
  const auto text = [&](const char* pointer) {
    return run.value(json::json_pointer(pointer), std::string());
  };
  ModelFolder found{.path = folder,
                    .is_native = true,
                    .config_json = published->second,
                    .config_name = (folder / checkpoint::kManifestName).string()};
  if (!run.is_object()) throw Error("{}: its config is not JSON", found.config_name);
  found.family = text("/model_spec/name");
  if (found.config_json.empty())
    throw Error(
        "{} holds a model of the family '{}', which has no config.json; only the runs of the "
        "module that defines it can load it",
        folder.string(), found.family);
  const std::string own = text("/tokenizer/path");
  found.assets = text("/hf_assets_path");
  found.tokenizer = own.empty() ? found.assets : fs::path(own);
  found.base = checkpoint::recorded_base_model(state);
  return found;
}

// Ids of "eos_token_id", which is absent, null, a number or a list of them.
std::vector<int64_t> eos_ids(const fs::path& file) {
  std::vector<int64_t> ids;
  if (!fs::exists(file)) return ids;
  const json document = parse_json_or_discard(read_file(file));
  if (!document.is_object() || !document.contains("eos_token_id")) return ids;
  const json& value = document["eos_token_id"];
  for (const json& id : value.is_array() ? value : json::array({value}))
    if (id.is_number_integer()) ids.push_back(id.get<int64_t>());
  return ids;
}

}  // namespace

bool is_adapter_folder(const fs::path& folder) {
  return checkpoint::is_peft_folder(folder) && !fs::exists(folder / "config.json") &&
         !fs::exists(folder / checkpoint::kManifestName);
}

ModelFolder find_model(const fs::path& folder) {
  const fs::path config = folder / "config.json";
  if (fs::exists(config))
    return {.path = folder,
            .config_json = read_file(config),
            .config_name = config.string(),
            .tokenizer = folder,
            .assets = folder};
  if (fs::exists(folder / checkpoint::kManifestName)) return native_checkpoint(folder);
  if (is_adapter_folder(folder))
    throw Error(
        "{0} holds LoRA adapters and no model; merge them into the model that they were trained "
        "on, `rhea convert --from {0} --hf_assets_path BASE --to DIR`, and name DIR",
        folder.string());
  if (fs::is_regular_file(folder))
    throw Error("{} is a file, not the folder of a model{}", folder.string(),
                gguf::File::is_gguf(folder)
                    ? "; make one of it with `rhea convert --from FILE --to DIR`"
                    : "");
  std::vector<std::string> below;
  for (const fs::path& place :
       {folder, folder / "checkpoint", folder / "export", folder / "checkpoint" / "export"})
    for (const auto& step : checkpoint::list_step_folders(place))
      below.push_back(step.path.string());
  if (!below.empty())
    throw Error("{} is no model, but there are checkpoints below it; name one of them:\n  {}",
                folder.string(), fmt::join(below, "\n  "));
  throw Error(
      "{} holds no model: neither config.json (Hugging Face files) nor {} (a checkpoint of rhea "
      "train)",
      folder.string(), checkpoint::kManifestName);
}

void check_result_file(const fs::path& file) {
  check_output_file(file);
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  for (const char* mark : {"config.json", safetensors::kIndexName, safetensors::kSingleName,
                           checkpoint::kManifestName})
    if (fs::exists(folder / mark))
      throw Error(
          "cannot write {}: its folder is that of a model ({}), which a result would change; name "
          "a "
          "file in another folder",
          file.string(), mark);
}

std::string eos_disagreement(const tokenizer::Tokenizer& tokenizer, const fs::path& folder) {
  const auto eos = tokenizer.eos_id();
  if (!eos) return "";
  std::string others;
  for (const char* name : {"config.json", "generation_config.json"}) {
    const auto ids = eos_ids(folder / name);
    if (ids.empty() || std::ranges::find(ids, int64_t{*eos}) != ids.end()) continue;
    others += fmt::format("{}{} says {}", others.empty() ? "" : ", ", name, fmt::join(ids, ", "));
  }
  if (others.empty()) return "";
  return fmt::format("End of text: the tokenizer's {} ({}) is used; {}", *eos,
                     tokenizer.token_text(*eos), others);
}

}  // namespace rhea
