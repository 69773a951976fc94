// Names of the weights in exported files, and the config.json beside them.
#pragma once
#include <fmt/core.h>

#include <array>
#include <string>

#include "rhea/models/key_rules.h"
#include "rhea/models/registry.h"

namespace token_shift {

inline constexpr std::array kKeyRules = {
    rhea::models::KeyRule{"tok_embeddings.weight", "model.embed_tokens.weight"},
    rhea::models::KeyRule{"layers.{}.attention_norm.weight", "model.layers.{}.mixer_norm.weight"},
    rhea::models::KeyRule{"layers.{}.attention.share", "model.layers.{}.mixer.share"},
    rhea::models::KeyRule{"layers.{}.attention.wg.weight", "model.layers.{}.mixer.gate.weight"},
    rhea::models::KeyRule{"layers.{}.attention.wv.weight", "model.layers.{}.mixer.value.weight"},
    rhea::models::KeyRule{"layers.{}.attention.wo.weight", "model.layers.{}.mixer.out.weight"},
    rhea::models::KeyRule{"layers.{}.ffn_norm.weight", "model.layers.{}.mlp_norm.weight"},
    rhea::models::KeyRule{"layers.{}.feed_forward.w1.weight", "model.layers.{}.mlp.gate.weight"},
    rhea::models::KeyRule{"layers.{}.feed_forward.w2.weight", "model.layers.{}.mlp.down.weight"},
    rhea::models::KeyRule{"layers.{}.feed_forward.w3.weight", "model.layers.{}.mlp.up.weight"},
    rhea::models::KeyRule{"norm.weight", "model.norm.weight"},
};

inline std::string config_json(const rhea::TrainerConfig& run) {
  const auto& model = rhea::models::decoder(run.model_spec);
  return fmt::format(
      "{{\n  \"model_type\": \"token_shift\",\n  \"hidden_size\": {},\n  \"num_hidden_layers\": "
      "{},\n"
      "  \"vocab_size\": {},\n  \"tie_word_embeddings\": true\n}}\n",
      model.tok_embeddings->embedding_dim, model.layers.size(), model.vocab_size());
}

}  // namespace token_shift
