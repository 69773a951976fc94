// ModelSpec from a built decoder.
#include "rhea/models/flavor.h"

#include "rhea/nn/mla.h"

namespace rhea::models {

void check_moe_comm_backend(std::string_view name) {
  if (name == "standard") return;
  if (name != "deepep" && name != "hybridep" && name != "minimal_async_ep")
    throw Error(
        "moe_comm_backend '{}' is unknown; known: standard, deepep, hybridep, minimal_async_ep",
        name);
  throw Error(
      "moe_comm_backend '{}' is for experts on several ranks (expert_parallel_degree > 1); this "
      "run has one: use standard",
      name);
}

ModelSpec make_spec(std::string_view family, std::string_view flavor, nn::Decoder::Config model,
                    std::string_view attn_backend) {
  const bool masks =
      attn_backend == "flex" || attn_backend == "varlen" || attn_backend == "flex_flash";
  if (!masks && attn_backend != "sdpa")
    throw Error("attn_backend '{}' is unknown; known: flex, varlen, flex_flash, sdpa",
                attn_backend);
  for (auto& layer : model.layers) {
    if (auto* attention = layer->attention.as<nn::Attention::Config>())
      attention->document_mask = masks;
    else if (auto* latent = layer->attention.as<nn::LatentAttention::Config>())
      latent->document_mask = masks;
  }
  ModelSpec spec;
  spec.name = family;
  spec.flavor = flavor;
  spec.model = std::move(model);
  return spec;
}

}  // namespace rhea::models
