#include "rhea/run_overrides.h"

#include <filesystem>

#include "rhea/base/error.h"
#include "rhea/config/canonicalize.h"
#include "rhea/config/override.h"
#include "rhea/config/override_imports.h"
#include "rhea/nn/decoder.h"
#include "rhea/plugin/loader.h"
#include "rhea/plugin/toolchain.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;

// A source in overrides/, which lies beside Rhea's headers or is installed under share/.
std::optional<fs::path> find_example(const std::string& module) {
  std::vector<fs::path> folders;
  try {
    folders = plugin::header_folders();
  } catch (const Error&) {
    return std::nullopt;  // Rhea is not installed, only its program is here
  }
  for (const fs::path& folder : folders)
    for (const char* place : {"overrides", "../share/rhea/overrides"}) {
      const fs::path file = (folder / place / (module + ".cpp")).lexically_normal();
      std::error_code error;
      if (fs::is_regular_file(file, error)) return file;
    }
  return std::nullopt;
}

std::optional<std::string> load(const std::string& module) {
  auto file = plugin::find_module(module);
  if (!file) file = find_example(module);
  if (!file) return std::nullopt;
  return plugin::load_module(*file).file.string();
}

// The head of a model that multiplies with its embedding's matrix instead; a bias or an adapter of
// the head is used all the same.
std::string unused(const nn::Decoder::Config* model, const Config& node) {
  if (model == nullptr || !model->tie_word_embeddings || &node != model->lm_head.get()) return "";
  if (model->lm_head->bias || !model->has_plain_head()) return "";
  return "its head is the embedding's matrix (tie_word_embeddings); override the embedding, or "
         "train a model whose head is its own";
}

}  // namespace

void apply_overrides(TrainerConfig& config) {
  OverrideConfig& section = config.override;
  if (section.applied) return;
  const auto applied =
      config::apply_overrides(config, section.imports, config::override_registry(), load,
                              [model = config.model_spec.model.as<nn::Decoder::Config>()](
                                  const Config& node) { return unused(model, node); });
  // Replacements are spelled as options are.
  if (!applied.nodes.empty()) config::canonicalize(config);
  section.active = applied.names();
  section.applied = true;
}

void load_imports(const std::vector<std::string>& imports) {
  config::resolve_imports(imports, config::override_registry(), load);
}

}  // namespace rhea
