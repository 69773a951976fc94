// The policy: order of sources, reasons to save, what is kept.
#include "rhea/components/checkpoint/checkpointer.h"

#include <fmt/ranges.h>
#include <strings.h>

#include <algorithm>
#include <chrono>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/components/checkpoint/adapters.h"
#include "rhea/components/checkpoint/background_task.h"
#include "rhea/components/checkpoint/base_model.h"
#include "rhea/components/checkpoint/folder_claim.h"
#include "rhea/components/checkpoint/peft.h"
#include "rhea/components/checkpoint/source.h"
#include "rhea/components/checkpoint/step_folder.h"
#include "rhea/components/checkpoint/step_reader.h"
#include "rhea/components/checkpoint/step_writer.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea::checkpoint {
namespace {

namespace fs = std::filesystem;
constexpr const char* kLog = "checkpoint";

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::vector<NamedTensor> model_only(std::span<const NamedTensor> tensors) {
  std::vector<NamedTensor> model;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(model),
               [](const NamedTensor& tensor) { return !is_optimizer_state(tensor.name); });
  return model;
}

bool has_adapters(const StepReader& reader) {
  return std::ranges::any_of(reader.manifest().tensors,
                             [](const auto& entry) { return is_adapter(entry.first); });
}

fs::path step_path(const fs::path& folder, int64_t step) {
  return folder / fmt::format("step-{}", step);
}

}  // namespace

struct Checkpointer::Impl {
  CheckpointConfig config;
  RunFolders folders;
  KeyMap key_map;
  ThreadPool* pool = nullptr;
  fs::path folder;
  FolderClaim claim;
  // The published folder that the weights were taken from, at the start of this run or before it,
  // absolute; empty: none. hf_assets_path may hold a tokenizer only.
  fs::path base_model;
  // Last step that this run wrote in full. The writer's while it works.
  int64_t saved_step = -1;

  Snapshot snapshot;
  BackgroundTask writer;

  bool asynchronous() const { return ::strcasecmp(config.async_mode.c_str(), "disabled") != 0; }

  bool excluded(std::string_view part) const {
    const auto& list = config.exclude_from_loading;
    return std::find(list.begin(), list.end(), part) != list.end();
  }

  // --- loading

  // Says which parts of a native checkpoint are taken, and why the others are not.
  void log_taken(const StepReader& reader, bool only_model) const {
    if (reader.manifest().kind != Manifest::Kind::full || only_model) {
      log::info(kLog, "Taking only the weights.");
      return;
    }
    struct Part {
      const char* option;
      const char* name;
    };
    std::string taken = "weights", fresh;
    for (const Part part : {Part{"optimizer", "optimizer"}, Part{"lr_scheduler", "schedule"},
                            Part{"dataloader", "data position"}, Part{"train_state", "step"}}) {
      std::string& list = excluded(part.option) ? fresh : taken;
      list += fmt::format("{}{}", list.empty() ? "" : ", ", part.name);
    }
    if (fresh.empty())
      log::info(kLog, "Taking {}.", taken);
    else
      log::info(kLog, "Taking {}; starting fresh, by checkpoint.exclude_from_loading: {}.", taken,
                fresh);
  }

  static void log_new_adapters(const std::vector<std::string>& absent) {
    std::vector<std::string> names;
    std::ranges::copy_if(absent, std::back_inserter(names), is_adapter);
    if (names.empty()) return;
    constexpr size_t kListed = 10;
    const size_t count = names.size();
    names.resize(std::min(count, kListed));
    log::info(kLog, "The base model has no adapters; {} tensors of theirs start fresh: {}{}.",
              count, fmt::join(names, ", "), count > kListed ? ", ..." : "");
  }

  // Drops the adapters from `targets` when the checkpoint is one of the base model, and returns
  // their names.
  static std::vector<std::string> leave_out_adapters(const StepReader& reader,
                                                     std::vector<NamedTensor>& targets) {
    std::vector<std::string> absent;
    if (has_adapters(reader)) return absent;
    std::erase_if(targets, [&](const NamedTensor& target) {
      if (!is_adapter(target.name)) return false;
      absent.push_back(target.name);
      return true;
    });
    log_new_adapters(absent);
    return absent;
  }

  // Names of tensors alone would not say why a checkpoint does not fit.
  void require_same_adapters(const StepReader& reader, Loaded::Source source) const {
    const bool has = has_adapters(reader);
    if (has && key_map.adapters.empty())
      throw Error(
          "{0} was saved with LoRA adapters, and the model of this run has none; give it the "
          "LoRAConverter of that run, or make a model with the adapters merged in: `rhea convert "
          "--from {0} --to DIR`",
          reader.path().string());
    if (!has && !key_map.adapters.empty() && source == Loaded::Source::resumed)
      throw Error(
          "{0} was saved without LoRA adapters, and the model of this run has {1}; start a new run "
          "from its weights: another dump_folder and --checkpoint.initial_load_path {0}",
          fs::absolute(reader.path()).string(), key_map.adapters.size());
  }

  Loaded load_native(const fs::path& path, std::span<const NamedTensor> tensors,
                     Loaded::Source source, bool only_model) {
    const Stopwatch watch;
    const StepReader reader(path);
    log_taken(reader, only_model);
    require_same_adapters(reader, source);
    // Weights of another run have moved, unless they lie frozen below adapters.
    if (source == Loaded::Source::resumed || has_adapters(reader))
      base_model = recorded_base_model(reader.manifest().state);
    const bool stored_full = reader.manifest().kind == Manifest::Kind::full;
    const bool with_optimizer = !only_model && stored_full && !excluded("optimizer");
    std::vector<NamedTensor> targets(tensors.begin(), tensors.end());
    if (!with_optimizer) targets = model_only(tensors);
    const std::vector<std::string> absent = source == Loaded::Source::initial
                                                ? leave_out_adapters(reader, targets)
                                                : std::vector<std::string>();
    reader.read_all(targets, [&](const std::string& name) {
      return with_optimizer || !is_optimizer_state(name);
    });
    Loaded loaded;
    loaded.source = source;
    loaded.path = path;
    loaded.absent = absent;
    for (const NamedTensor& target : model_only(targets)) {
      ++loaded.num_tensors;
      loaded.num_elements += target.num_elements();
    }
    if (!only_model && stored_full) {
      for (const auto& [part, text] : reader.manifest().state) {
        if (!excluded(part)) loaded.state.emplace(part, text);
      }
      if (!excluded("train_state")) loaded.step = reader.manifest().step;
    }
    log::info(kLog, "Finished loading the checkpoint in {:.2f} seconds.", watch.seconds());
    return loaded;
  }

  // A flaw that shows only when the data is read: offers the step before, if there is one.
  Loaded resume(const StepFolder& step, std::span<const NamedTensor> tensors) {
    log::info(kLog, "Loading the checkpoint from {}.", step.path.string());
    if (config.initial_load_path || config.initial_load_in_hf)
      log::info(kLog, "initial_load_path is ignored, because {} holds a checkpoint of this run.",
                folder.string());
    try {
      const bool only_model = step.content == StepFolder::Content::model_only;
      Loaded loaded = load_native(step.path, tensors, Loaded::Source::resumed, only_model);
      if (!only_model && config.exclude_from_loading.empty()) saved_step = step.step;
      return loaded;
    } catch (const DamageError& error) {
      throw Error("{}{}", error.what(), previous_step_advice(folder, step.step));
    }
  }

  // Weights of the base model, and adapters where the folder holds these alone.
  Loaded load_published(const fs::path& path, std::span<const NamedTensor> tensors,
                        const Initialise& initialise) {
    const bool only_adapters = is_peft_folder(path);
    if (only_adapters && !safetensors::Weights::exist(folders.hf_assets_path))
      throw Error(
          "{} holds adapters alone; the weights of their base model are read from hf_assets_path, "
          "and {} holds none",
          path.string(), folders.hf_assets_path.string());
    const fs::path& weights = only_adapters ? folders.hf_assets_path : path;
    Loaded loaded = load_hf(weights, tensors, initialise);
    base_model = fs::absolute(weights).lexically_normal();
    if (!only_adapters) {
      log_new_adapters(loaded.absent);
      return loaded;
    }
    const int64_t count = import_adapters(path, model_only(tensors), key_map);
    log::info(kLog, "Loaded {} matrices of adapters from {}.", count, path.string());
    std::erase_if(loaded.absent, is_adapter);
    loaded.num_tensors += count;
    for (const NamedTensor& tensor : model_only(tensors))
      if (is_adapter(tensor.name)) loaded.num_elements += tensor.num_elements();
    loaded.path = path;
    return loaded;
  }

  Loaded load_hf(const fs::path& path, std::span<const NamedTensor> tensors,
                 const Initialise& initialise) {
    log::info(kLog, "Loading the checkpoint from {}.", path.string());
    log::info(kLog,
              "Taking the weights of a Hugging Face folder; step, optimizer and data start fresh.");
    const Stopwatch watch;
    const ImportResult result =
        import_hf(path, key_map, model_only(tensors),
                  {.strict = config.initial_load_strict, .pool = pool, .initialise = initialise});
    log::info(kLog, "Loaded {} tensors from {}.", result.num_tensors, path.string());
    if (!result.skipped.empty())
      log::info(kLog, "Skipped {} tensors that the model does not train, such as {}.",
                result.skipped.size(), result.skipped.front());
    if (!result.without_key.empty())
      log::warning(kLog, "Not in the files, because Hugging Face has no key for them: {}.",
                   fmt::join(result.without_key, ", "));
    for (const std::string& left_out : result.left_out)
      log::warning(kLog, "Left out: {}.", left_out);
    if (result.num_fp8 > 0)
      log::info(kLog, "{} tensors were FP8 blocks and have been converted.", result.num_fp8);
    if (result.num_mxfp4 > 0)
      log::info(kLog, "{} tensors were MXFP4 and have been converted.", result.num_mxfp4);
    if (config.initial_load_in_hf_quantized && result.num_fp8 + result.num_mxfp4 == 0)
      log::warning(kLog, "initial_load_in_hf_quantized has no effect: nothing in {} is quantized.",
                   path.string());
    log::info(kLog, "Finished loading the checkpoint in {:.2f} seconds.", watch.seconds());
    Loaded loaded;
    loaded.source = Loaded::Source::initial;
    loaded.path = path;
    loaded.num_tensors = result.num_tensors;
    loaded.num_elements = result.num_elements;
    loaded.absent = result.absent;
    loaded.absent_is_drawn = true;
    return loaded;
  }

  Loaded load(std::span<const NamedTensor> tensors, const Initialise& initialise) {
    writer.wait();
    if (const auto step =
            find_resume_step(folder, config.load_step,
                             config.initial_load_path.has_value() || config.initial_load_in_hf))
      return resume(*step, tensors);
    if (config.initial_load_in_hf)
      return load_published(
          config.initial_load_path ? fs::path(*config.initial_load_path) : folders.hf_assets_path,
          tensors, initialise);
    if (config.initial_load_path) {
      const fs::path path = *config.initial_load_path;
      check_initial_source(path, config.initial_load_model_only);
      log::info(kLog, "Loading the checkpoint from {}.", path.string());
      return load_native(path, tensors, Loaded::Source::initial, config.initial_load_model_only);
    }
    log::info(kLog, "No checkpoint was provided, this is a fresh start.");
    return {};
  }

  // --- saving

  // Only complete full checkpoints count and are removed; the one just written never is.
  void purge(int64_t written) {
    if (config.keep_latest_k == 0) return;
    std::vector<fs::path> complete;
    for (const StepFolder& step : list_step_folders(folder)) {
      if (step.content == StepFolder::Content::full && !fs::is_symlink(step.path) &&
          step.step != written)
        complete.push_back(step.path);
    }
    const auto keep = static_cast<size_t>(config.keep_latest_k - 1);
    for (size_t i = 0; i + keep < complete.size(); ++i) {
      log::info(kLog, "Checkpointer is deleting {}.", complete[i].string());
      try {
        remove_folder(complete[i]);
      } catch (const fs::filesystem_error& error) {
        log::warning(kLog, "cannot delete {}: {}", complete[i].string(), error.code().message());
      }
    }
  }

  void write_full(int64_t step, std::span<const NamedTensor> tensors, const StateMap& state) {
    const Stopwatch watch;
    write_step(step_path(folder, step), {step, Manifest::Kind::full, tensors, state, std::nullopt});
    purge(step);
    log::info(kLog, "Finished saving the checkpoint in {:.2f} seconds.", watch.seconds());
  }

  // Runs `write`; with on_full_disk = retry a full disk is only a warning as long as an older
  // checkpoint is there.
  bool guarded(const std::function<void()>& write) {
    try {
      write();
      return true;
    } catch (const ExitError& error) {
      if (error.code() != ExitCode::out_of_memory || config.on_full_disk != "retry" || !latest())
        throw;
      log::warning(kLog, "{}. Training goes on; {} is complete, and the next save tries again.",
                   error.what(), latest()->string());
      return false;
    }
  }

  bool save_now(int64_t step, std::span<const NamedTensor> tensors, const StateMap& state) {
    log::info(kLog, "Saving the checkpoint.");
    const bool written = guarded([&] { write_full(step, tensors, state); });
    if (written) saved_step = step;
    return written;
  }

  void stage(int64_t step, std::span<const NamedTensor> tensors, const StateMap& state) {
    log::info(kLog, "Staging the checkpoint.");
    const Stopwatch watch;
    snapshot.take(tensors);
    log::info(kLog, "Finished staging the checkpoint in {:.2f} seconds.", watch.seconds());
    writer.start([this, step, state] {
      saved_step = -1;
      if (guarded([&] { write_full(step, snapshot.tensors(), state); })) saved_step = step;
    });
  }

  void save_last(int64_t step, std::span<const NamedTensor> tensors, const StateMap& state) {
    const Stopwatch watch;
    if (!config.last_save_model_only || config.keep_last_full) {
      log::info(kLog, "Saving a full checkpoint at last step, step {}.", step);
      if (saved_step != step) write_full(step, tensors, state);
      saved_step = step;
    }
    if (config.last_save_model_only) {
      const fs::path path = step_path(config.keep_last_full ? folder / "export" : folder, step);
      log::info(kLog, "Saving a model only checkpoint in {} at last step, step {}.",
                config.export_dtype, step);
      const DType dtype = parse_dtype(config.export_dtype);
      const std::vector<NamedTensor> model = model_only(tensors);
      if (config.last_save_in_hf && !key_map.adapters.empty() && !config.merge_adapters)
        export_adapters(path, model, key_map, base_model.string(), dtype);
      else if (config.last_save_in_hf)
        export_hf(path, model, key_map,
                  {.folder = folders.hf_assets_path,
                   .weights = base_model,
                   .tokenizer = folders.tokenizer,
                   .config_json = folders.hf_config_json},
                  dtype);
      else
        write_step(path, {step, Manifest::Kind::model_only, model, state, dtype});
      log::info(kLog, "Wrote weights only to {}; {}.", path.string(),
                config.keep_last_full ? "training can go on from the full checkpoint beside it"
                                      : "training cannot be resumed from them");
    }
    log::info(kLog, "Last step checkpoint completed in {:.2f}s", watch.seconds());
  }

  StateMap with_base_model(StateMap state) const {
    record_base_model(state, base_model);
    return state;
  }

  std::optional<fs::path> latest() const {
    std::optional<fs::path> found;
    for (const StepFolder& step : list_step_folders(folder)) {
      if (step.content == StepFolder::Content::full) found = step.path;
    }
    return found;
  }
};

Checkpointer::Checkpointer(const CheckpointConfig& config, RunFolders folders, KeyMap key_map,
                           ThreadPool* pool)
    : impl_(std::make_unique<Impl>()) {
  impl_->config = config;
  impl_->folder = fs::absolute(folders.dump_folder / config.folder).lexically_normal();
  impl_->folders = std::move(folders);
  impl_->key_map = std::move(key_map);
  impl_->pool = pool;
  if (!config.enable) return;
  log::info(kLog, "Checkpointing active. Checkpoints will be loaded from and saved to {}",
            impl_->folder.string());
  if (!config.load_only) impl_->claim = FolderClaim(impl_->folder);
  remove_stale_temporaries(impl_->folder);
  remove_stale_temporaries(impl_->folder / "export");
}

Checkpointer::~Checkpointer() {
  try {
    impl_->writer.wait();
  } catch (const std::exception& error) {
    // Reached only when the run ends by another error: nobody else asks for this one.
    log::error(kLog, "{}", error.what());
  }
}

Loaded Checkpointer::load(std::span<const NamedTensor> tensors, const Initialise& initialise) {
  return impl_->config.enable ? impl_->load(tensors, initialise) : Loaded{};
}

bool Checkpointer::due(int64_t step, SaveReason reason) const {
  const CheckpointConfig& config = impl_->config;
  if (!config.enable || config.load_only) return false;
  switch (reason) {
    case SaveReason::interval:
      return step % config.interval == 0 || (step == 1 && config.enable_first_step_checkpoint);
    case SaveReason::signal:
      return config.save_on_signal;
    default:
      return true;
  }
}

bool Checkpointer::save(int64_t step, std::span<const NamedTensor> tensors, const StateMap& state,
                        SaveReason reason) {
  if (!due(step, reason)) return false;
  impl_->writer.wait();
  const StateMap whole = impl_->with_base_model(state);
  if (reason == SaveReason::last) {
    impl_->save_last(step, tensors, whole);
    return true;
  }
  if (impl_->saved_step == step) return true;
  if (reason == SaveReason::interval && impl_->asynchronous()) {
    impl_->stage(step, tensors, whole);
    return true;
  }
  return impl_->save_now(step, tensors, whole);
}

bool Checkpointer::lacks_last_weights(int64_t step) const {
  const CheckpointConfig& config = impl_->config;
  if (!config.enable || config.load_only || !config.last_save_model_only || !config.keep_last_full)
    return false;
  const auto found = inspect_step_folder(step_path(impl_->folder / "export", step)).content;
  return found !=
         (config.last_save_in_hf ? StepFolder::Content::hf : StepFolder::Content::model_only);
}

void Checkpointer::save_seed(std::span<const NamedTensor> tensors, const StateMap& state) {
  const std::vector<NamedTensor> model = model_only(tensors);
  write_step(step_path(impl_->folder, 0),
             {0, Manifest::Kind::model_only, model, impl_->with_base_model(state), std::nullopt});
  log::info(kLog, "Created seed checkpoint");
}

void Checkpointer::poll() {
  if (impl_->writer.done()) impl_->writer.wait();
}
void Checkpointer::wait() { impl_->writer.wait(); }

std::optional<fs::path> Checkpointer::latest() const { return impl_->latest(); }

}  // namespace rhea::checkpoint
