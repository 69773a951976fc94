#include "rhea/convert_native.h"

#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/base/mapped_file.h"
#include "rhea/base/thread_pool.h"
#include "rhea/components/checkpoint/config_spelling.h"
#include "rhea/components/checkpoint/hf_folder.h"
#include "rhea/components/checkpoint/hf_weights.h"
#include "rhea/components/checkpoint/step_writer.h"
#include "rhea/models/registry.h"
#include "rhea/parameter_memory.h"
#include "rhea/parameter_tensors.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;

// The parts of the run's config that say which model a checkpoint holds.
std::string run_config(const std::string& family, const fs::path& assets) {
  return nlohmann::json{{"model_spec", {{"name", family}}}, {"hf_assets_path", assets.string()}}
      .dump();
}

}  // namespace

void write_native(const ConvertOptions& options, const fs::path& from, const fs::path& to) {
  const fs::path& config_folder = options.hf_assets_path.empty() ? from : options.hf_assets_path;
  TrainerConfig config;
  config.hf_assets_path = config_folder.string();
  config.model_spec = models::deferred_spec(options.module.empty() ? "transformers_modeling_backend"
                                                                   : options.module);
  models::complete_spec(config);
  const nn::Decoder::Config& decoder = models::decoder(config.model_spec);
  ParameterMemory memory(decoder);
  ThreadPool pool;
  const auto result = checkpoint::import_hf(from, make_key_map(config.model_spec), memory.tensors(),
                                            {.pool = &pool});
  const DType dtype = options.export_dtype.value_or(DType::f32);
  // Where the files beside the weights are to be found later. A temporary folder will be gone: its
  // files go along.
  const bool keep_files = options.hf_assets_path.empty() && from != options.from;
  const fs::path config_file = config_folder / "config.json";
  checkpoint::StateMap state;
  state["config"] =
      run_config(config.model_spec.name, fs::absolute(keep_files ? to : config_folder));
  state["hf_config"] = checkpoint::spell_config(read_file(config_file), config_file.string(),
                                                checkpoint::ConfigSpelling::v5, dtype);
  checkpoint::StepContent content{0, checkpoint::Manifest::Kind::model_only, memory.tensors(),
                                  std::move(state), dtype};
  if (keep_files) {
    content.files = checkpoint::tokenizer_files(from);
    constexpr const char* kGeneration = "generation_config.json";
    std::string generation = checkpoint::text_of(from, kGeneration);
    if (!generation.empty()) content.files[kGeneration] = std::move(generation);
  }
  content.existing = Existing::refuse;
  content.full_disk_remedy = checkpoint::kFolderRemedy;
  checkpoint::write_step(to, content);
  log::info("convert", "Wrote {} published tensors to {} under the names of {}.",
            result.num_tensors, to.string(), config.model_spec.name);
}

}  // namespace rhea
