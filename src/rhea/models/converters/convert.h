// Converters of a spec, applied to its model; and what they share.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "rhea/config/trainer_config.h"
#include "rhea/nn/decoder.h"

namespace rhea::models {

// Applies spec.converters to spec.model in their order, once: a second call does nothing. Their
// notes go to spec.conversion_notes. Throws Error for a quantizing converter behind another kind,
// naming both, and what a converter throws.
void apply_converters(ModelSpec& spec);

// The decoder in the slot that a converter is given. Throws Error naming the converter.
nn::Decoder::Config& decoder_of(Slot<Config>& model, const ModelConverter& converter);

// Calls `visit` with the FQN and the slot of every linear layer, in tree order: names as in
// checkpoints. What `visit` puts into a slot is not walked. The weight-less head of a tied model is
// not among them.
void for_each_linear(nn::Decoder::Config& model,
                     const std::function<void(const std::string& fqn, SlotBase& slot)>& visit);

}  // namespace rhea::models
