// From sections of the config tree to the plain options of the components.
#pragma once
#include <filesystem>
#include <memory>

#include "rhea/components/data/data_loader.h"
#include "rhea/components/train_step/step_graphs.h"
#include "rhea/config/trainer_config.h"
#include "rhea/config/validate.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/exec/cpu/profile.h"
#include "rhea/ops/peak.h"

namespace rhea {

train_step::StepOptions step_options(const TrainerConfig& config);
exec::cpu::CompileOptions compile_options(const TrainerConfig& config);
data::DataLoaderOptions loader_options(const TrainerConfig& config, const DataloaderConfig& loader);

// What this machine can do: measured once and kept, or measured again (half a second), which a
// shared machine needs for shares that mean something.
exec::cpu::Limits machine_limits(const TrainerConfig& config, ThreadPool& pool,
                                 ops::Measure when = ops::Measure::once);

// executor.cache_dir with a leading $XDG_CACHE_HOME put in; empty: nothing is kept.
std::filesystem::path cache_folder(const TrainerConfig& config);
// Folder or file of the run's tokenizer.
std::filesystem::path tokenizer_path(const TrainerConfig& config);
// Null when the data set needs none (ready tokens).
std::shared_ptr<const tokenizer::Tokenizer> load_tokenizer_for(const TrainerConfig& config);

}  // namespace rhea
