#include "rhea/models/converters/convert.h"

#include "rhea/base/error.h"
#include "rhea/config/traverse.h"

namespace rhea::models {

void apply_converters(ModelSpec& spec) {
  if (spec.converters_applied) return;
  const ModelConverter* other = nullptr;
  for (const auto& converter : spec.converters) {
    if (converter->quantizes() && other != nullptr)
      throw Error(
          "{} must come before {}: it converts plain linear layers, which the other has wrapped or "
          "frozen; exchange them in the list of converters",
          converter->name(), other->name());
    if (!converter->quantizes()) other = &*converter;
  }
  for (const auto& converter : spec.converters)
    converter->convert(spec.model, spec.conversion_notes);
  spec.converters_applied = true;
}

nn::Decoder::Config& decoder_of(Slot<Config>& model, const ModelConverter& converter) {
  auto* decoder = model.as<nn::Decoder::Config>();
  if (decoder == nullptr)
    throw Error("{}: the model is {}, expected a decoder", converter.name(),
                model ? type_name(*model) : "absent");
  return *decoder;
}

void for_each_linear(nn::Decoder::Config& model,
                     const std::function<void(const std::string& fqn, SlotBase& slot)>& visit) {
  const std::string head(model.names->lm_head);
  const std::string prefix =
      model.names->prefix.empty() ? "" : fmt::format("{}.", model.names->prefix);
  config::traverse(model, [&](const config::Node& node) {
    if (node.slot == nullptr || dynamic_cast<nn::Linear::Config*>(&node.config) == nullptr)
      return true;
    const bool is_head = node.path == head;
    if (!is_head || !model.tie_word_embeddings)
      visit(is_head ? node.path : prefix + node.path, *node.slot);
    return false;
  });
}

}  // namespace rhea::models
