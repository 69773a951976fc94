#include "rhea/complete_model.h"

#include <filesystem>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/component_rules.h"
#include "rhea/model_rules.h"
#include "rhea/models/registry.h"
#include "rhea/nn/moe.h"
#include "rhea/plugin/throw_site.h"
#include "rhea/run_overrides.h"

namespace rhea {
namespace {

// Paths of a recipe begin with ./tests/assets and are meant from the root of the source tree.
// Called from elsewhere, the program finds that root above its own file.
void find_asset(std::string& path) {
  namespace fs = std::filesystem;
  if (!path.starts_with("./tests/assets/") || fs::exists(path)) return;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = program.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    const fs::path candidate = (folder / path).lexically_normal();
    if (!fs::exists(candidate, error)) continue;
    path = candidate.string();
    return;
  }
}

void fit_length(TrainerConfig& config) {
  const int64_t limit = models::decoder(config.model_spec).max_positions();
  if (limit <= 0 || config.training.seq_len <= limit) return;
  log::info("plan",
            "Planning rows of {} tokens in the place of {}: the model has no more positions", limit,
            config.training.seq_len);
  config.training.seq_len = limit;
}

}  // namespace

std::optional<config::ModelFacts> complete_model(TrainerConfig& config,
                                                 const CompleteOptions& options) {
  config::ModelFacts facts;
  find_asset(config.hf_assets_path);
  find_asset(config.hf_model);
  check_passes(config, facts.problems);
  const char* step = "model_spec";
  bool is_complete = false;
  try {
    models::complete_spec(config);
    step = "override.imports";
    apply_overrides(config);
    is_complete = true;
  } catch (const ExitError&) {
    throw;  // has an exit code of its own
  } catch (const Error& error) {
    facts.problems.push_back({step, "", plugin::with_throw_site(error)});
  }
  check_components(config, options.reads_files, facts.problems);
  if (!is_complete || !can_be_traced(config, facts.problems)) return facts;
  if (options.fits_length) fit_length(config);
  const nn::Decoder::Config& model = models::decoder(config.model_spec);
  facts.n_layers = static_cast<int64_t>(model.layers.size());
  facts.vocab_size = model.vocab_size();
  if (model.layers.empty()) return facts;
  const nn::TransformerBlock::Config& block = *model.layers.front();
  if (const auto* attention = block.attention.as<nn::Attention::Config>()) {
    facts.n_heads = attention->qkv_linear->n_heads;
    facts.n_kv_heads = attention->qkv_linear->n_kv_heads;
  }
  facts.ffn_hidden_dim = block.feed_forward->hidden_dim();
  for (const auto& layer : model.layers)
    if (const auto* mixture = layer->feed_forward.as<nn::MoE::Config>())
      facts.num_experts = mixture->router->num_experts;
  try {
    check_model(config, facts.problems);
  } catch (const Error& error) {
    facts.problems.push_back({"model_spec", "", plugin::with_throw_site(error)});
  }
  return facts;
}

}  // namespace rhea
