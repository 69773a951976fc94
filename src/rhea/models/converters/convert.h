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

// Whether a converter of the spec computes products in another format.
bool is_quantized(const ModelSpec& spec);

// The spec's converters with their fields, in their order: LoRAConverter {"rank": 8, ...}.
std::vector<std::string> describe_converters(const ModelSpec& spec);

// The decoder in the slot that a converter is given. Throws Error naming the converter.
nn::Decoder::Config& decoder_of(Slot<Config>& model, const ModelConverter& converter);

// A linear layer of the tree, under its name in checkpoints.
struct LinearNode {
  const std::string& fqn;      // "model.layers.0.self_attn.q_proj"
  const std::string& path;     // below the model's config, "layers.0.self_attn.q_proj"
  SlotBase& slot;              // holds a nn::Linear::Config, which a converter may replace
  bool is_head, is_tied_head;  // a tied head has no weight of its own
  // Whether `text` is the end of the FQN, in whole segments, or a glob (with any of *?[) over the
  // FQN, the path below the model or the full path.
  bool matches(const std::string& text) const;
};
// In tree order. What `visit` puts into a slot is not walked.
void for_each_linear(nn::Decoder::Config& model,
                     const std::function<void(const LinearNode& node)>& visit);

// What a converter did with the layers, for its last note.
class Conversion {
 public:
  // `converter` stands in the note.
  explicit Conversion(std::string converter) : converter_(std::move(converter)) {}
  // Counts a layer that was converted.
  void convert() { ++converted_; }
  // Notes a layer that stays as it is.
  void skip(const std::string& fqn, const std::string& reason);
  // "LoRAConverter: 28 of 29 <what>; skipped: lm_head (reason)", up to 10 of them. Throws Error
  // where nothing was converted.
  void finish(std::vector<ConversionNote>& notes, const std::string& what) const;

 private:
  std::string converter_;
  int64_t converted_ = 0;
  std::vector<std::string> skipped_;
};

}  // namespace rhea::models
