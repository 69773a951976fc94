// The model is traced for one row.
#include "rhea/model_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/checkpoint/adapters.h"
#include "rhea/components/train_step/optimizer_arguments.h"
#include "rhea/components/train_step/optimizer_groups.h"
#include "rhea/config/pattern.h"
#include "rhea/config/rules.h"
#include "rhea/config/traverse.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/models/hf/override_config.h"
#include "rhea/models/key_rules.h"
#include "rhea/models/registry.h"
#include "rhea/nn/losses.h"
#include "rhea/nn/moe.h"
#include "rhea/ops/ops.h"
#include "rhea/passes/pipeline.h"

namespace rhea {
namespace {

using Problems = std::vector<config::Problem>;

void add(Problems& problems, std::string path, std::string value, std::string reason) {
  problems.push_back({std::move(path), std::move(value), std::move(reason), true});
}

// Which of the model's positions allow no longer row than `limit`.
std::string_view set_by(const nn::Decoder::Config& model, int64_t limit) {
  if (model.learned_positions &&
      model.pos_embeddings->num_embeddings - model.position_offset == limit)
    return "learned position embedding";
  const auto has_alibi = [](const auto& layer) {
    const auto* attention = layer->attention.template as<nn::Attention::Config>();
    return attention != nullptr && attention->position_bias;
  };
  return std::ranges::any_of(model.layers, has_alibi) ? "ALiBi" : "attention RoPE";
}

void check_length(const TrainerConfig& config, const nn::Decoder::Config& model,
                  Problems& problems) {
  const int64_t limit = model.max_positions();
  if (limit <= 0 || config.training.seq_len <= limit) return;
  add(problems, "training.seq_len", std::to_string(config.training.seq_len),
      fmt::format("Training sequence length {} exceeds {} maximum supported sequence length {}.",
                  config.training.seq_len, set_by(model, limit), limit));
}

void check_groups(const OptimizerConfig& optimizer, const nn::Decoder::Config& model,
                  const std::vector<nn::Parameter>& parameters, Problems& problems) {
  // Groups that are wrong in themselves are reported by other rules.
  Problems wrong;
  for (const auto& group : optimizer.param_groups) {
    train_step::check_group(group, "", wrong);
    try {
      config::Pattern pattern(group.pattern);
    } catch (const Error&) {
      return;
    }
  }
  if (!wrong.empty()) return;
  if (optimizer.param_groups.empty()) return;
  std::vector<std::string> fqns;
  std::vector<int64_t> sizes;
  try {
    for (const auto& parameter : parameters) {
      if (!nn::is_trainable(model.trainable, parameter)) continue;
      fqns.push_back(parameter.fqn);
      sizes.push_back(ir::num_elements(parameter.shape));
    }
  } catch (const Error& error) {
    return add(problems, "model_spec.converters", "", error.what());
  }
  if (fqns.empty())
    return add(problems, "model_spec.converters", "",
               fmt::format("all {} parameters are frozen, so there is nothing to train",
                           parameters.size()));
  try {
    train_step::assign_groups(optimizer, fqns, sizes);
  } catch (const Error& error) {
    add(problems, "optimizer.param_groups", "", error.what());
  }
}

void check_recompute_texts(const ActivationCheckpointConfig& config, const ir::Graph& graph,
                           Problems& problems) {
  const auto& texts = config.force_recompute_mm_shapes_by_fqns;
  // The default names a module that most models lack.
  if (config.mode != "selective" ||
      texts == ActivationCheckpointConfig().force_recompute_mm_shapes_by_fqns)
    return;
  std::set<std::string> products;
  for (const auto& node : graph.nodes())
    if (node.op == &ops::kDotGeneral) products.insert(graph.scope_name(node));
  for (const std::string& text : texts) {
    if (std::ranges::any_of(
            products, [&](const std::string& fqn) { return fqn.find(text) != std::string::npos; }))
      continue;
    add(problems, "activation_checkpoint.force_recompute_mm_shapes_by_fqns", "'" + text + "'",
        fmt::format("is in the FQN of no matrix product of the model; use a part of an FQN such as "
                    "{}",
                    products.empty() ? "feed_forward.w1" : *products.begin()));
  }
}

// An export that finds a parameter without a name would fail after the last step.
void check_names(const TrainerConfig& config, const std::vector<nn::Parameter>& parameters,
                 Problems& problems) {
  const CheckpointConfig& checkpoint = *config.checkpoint;
  const bool exports = checkpoint.last_save_model_only && checkpoint.last_save_in_hf;
  if (!checkpoint.enable || !(exports || checkpoint.initial_load_in_hf)) return;
  const auto& rules = models::find_family(config.model_spec.name).key_rules;
  if (rules.empty()) return;  // the names are Hugging Face's
  std::vector<std::string> unnamed;
  for (const auto& parameter : parameters)
    for (const auto& part : parameter.parts)
      if (!checkpoint::is_adapter(part.fqn) && !models::to_hf(rules, part.fqn))
        unnamed.push_back(part.fqn);
  if (!unnamed.empty())
    add(problems, exports ? "checkpoint.last_save_in_hf" : "checkpoint.initial_load_in_hf", "true",
        fmt::format("{} has parameters without a Hugging Face name: {}", config.model_spec.name,
                    fmt::join(unnamed, ", ")));
}

// Weights of another model of the same shapes would load without a word; the file beside them
// tells.
void check_published_config(const TrainerConfig& config, const nn::Decoder::Config& model,
                            Problems& problems) {
  const CheckpointConfig& checkpoint = *config.checkpoint;
  if (!checkpoint.enable || !checkpoint.initial_load_in_hf) return;
  if (!models::find_family(config.model_spec.name).build) return;  // made in code only
  const std::filesystem::path folder = checkpoint.initial_load_path.value_or(config.hf_assets_path);
  const auto file = folder / "config.json";
  if (!std::filesystem::exists(file)) return;
  try {
    // What the run sets itself is no mistake; weights of other shapes are refused when they load.
    const bool overridden = config.model_spec.flavor == models::kFromConfig;
    const auto published = models::hf::override_config(
        read_file(file), file.string(), overridden ? config.hf_overrides : HfOverridesConfig{});
    const auto found =
        models::hf::differences(model, models::hf::parse_config(published.json, file.string()));
    if (found.empty()) return;
    problems.push_back(
        {"checkpoint.initial_load_in_hf", "true",
         fmt::format("{} is not the config of {} {}; use the flavor that it belongs to, or a "
                     "config function that reads this file:\n    {}",
                     file.string(), config.model_spec.name, config.model_spec.flavor,
                     fmt::join(found, "\n    "))});
  } catch (const Error& error) {
    problems.push_back({"checkpoint.initial_load_in_hf", "true", error.what()});
  }
}

}  // namespace

void check_passes(const TrainerConfig& config, Problems& problems) {
  try {
    passes::check_pass_names(config.debug.disable_passes);
  } catch (const Error& error) {
    add(problems, "debug.disable_passes",
        fmt::format("{}", fmt::join(config.debug.disable_passes, ",")), error.what());
  }
}

bool can_be_traced(TrainerConfig& config, Problems& problems) {
  const size_t before = problems.size();
  const auto refuse_above = [&](const std::string& path, std::string_view field, int64_t value,
                                std::string_view limit_field, int64_t limit) {
    if (value <= limit) return;
    add(problems, fmt::format("{}.{}", path, field), std::to_string(value),
        fmt::format("must be at most {}, which is {}", limit_field, limit));
  };
  const ModelSpec& spec = config.model_spec;
  if (models::families().find(spec.name) == nullptr)
    add(problems, "model_spec.name", "'" + spec.name + "'",
        fmt::format("expected one of: {}", joined(models::families().names())));
  const auto* model = spec.model.as<nn::Decoder::Config>();
  if (model == nullptr) {
    add(problems, "model_spec.model", "",
        "is no decoder: set model_spec to what the model_registry of a family gives");
    return false;
  }
  if (model->layers.empty())
    add(problems, "model_spec.model.layers", "", "is empty: a model has one layer at least");
  config::traverse(config.model_spec, [&](const config::Node& node) {
    const std::string path = "model_spec." + node.path;
    if (const auto* router = dynamic_cast<const nn::Router::Config*>(&node.config)) {
      refuse_above(path, "top_k", router->top_k, "num_experts", router->num_experts);
      refuse_above(path, "top_groups", router->top_groups, "num_groups", router->num_groups);
    }
    const auto* qkv = dynamic_cast<const nn::QKV::Config*>(&node.config);
    if (qkv != nullptr && qkv->n_kv_heads > 0 && qkv->n_heads % qkv->n_kv_heads != 0)
      add(problems, path + ".n_heads", std::to_string(qkv->n_heads),
          fmt::format("must be a multiple of n_kv_heads, which is {}", qkv->n_kv_heads));
    return true;
  });
  config::Report fields;  // validate() reports these
  config::check_fields(config, fields);
  return problems.size() == before &&
         std::ranges::none_of(fields.problems, [](const config::Problem& problem) {
           return problem.path.starts_with("model_spec.") || problem.path.starts_with("loss");
         });
}

void check_model(const TrainerConfig& config, Problems& problems) {
  const auto& model = models::decoder(config.model_spec);
  const size_t before = problems.size();
  check_length(config, model, problems);
  // A length that is refused anyway says nothing about the model's modules.
  constexpr int64_t kMaxTokens = INT32_MAX;
  const int64_t asked = config.training.seq_len;
  const bool fits = problems.size() == before && asked > 0 && asked <= kMaxTokens;
  const int64_t seq_len = fits ? asked : 1;
  ir::Graph graph;
  nn::Trace trace(graph, {.num_tokens = seq_len, .seq_len = seq_len});
  nn::traced_loss(trace, model, *config.loss);
  for (const std::string& note : trace.notes()) log::warning("override", "{}", note);
  check_groups(*config.optimizer, model, trace.parameters(), problems);
  check_recompute_texts(config.activation_checkpoint, graph, problems);
  check_names(config, trace.parameters(), problems);
  check_published_config(config, model, problems);
}

}  // namespace rhea
