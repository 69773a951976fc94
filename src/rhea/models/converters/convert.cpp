#include "rhea/models/converters/convert.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/config/glob.h"
#include "rhea/config/json.h"
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

bool is_quantized(const ModelSpec& spec) {
  return std::ranges::any_of(spec.converters,
                             [](const auto& converter) { return converter->quantizes(); });
}

std::vector<std::string> describe_converters(const ModelSpec& spec) {
  std::vector<std::string> texts;
  for (const auto& converter : spec.converters)
    texts.push_back(fmt::format("{} {}", converter->name(), config::to_json(*converter, -1)));
  return texts;
}

nn::Decoder::Config& decoder_of(Slot<Config>& model, const ModelConverter& converter) {
  auto* decoder = model.as<nn::Decoder::Config>();
  if (decoder == nullptr)
    throw Error("{}: the model is {}, expected a decoder", converter.name(),
                model ? type_name(*model) : "absent");
  return *decoder;
}

bool LinearNode::matches(const std::string& text) const {
  if (text.find_first_of("*?[") != std::string::npos) {
    const config::Glob glob(text);
    return glob.matches(fqn) || glob.matches(path) ||
           glob.matches(fmt::format("model_spec.model.{}", path));
  }
  if (!fqn.ends_with(text)) return false;
  return fqn.size() == text.size() || fqn[fqn.size() - text.size() - 1] == '.';
}

void for_each_linear(nn::Decoder::Config& model,
                     const std::function<void(const LinearNode& node)>& visit) {
  const std::string head(model.names->lm_head);
  const std::string prefix =
      model.names->prefix.empty() ? "" : fmt::format("{}.", model.names->prefix);
  config::traverse(model, [&](const config::Node& node) {
    if (node.slot == nullptr || dynamic_cast<nn::Linear::Config*>(&node.config) == nullptr)
      return true;
    const bool is_head = node.path == head;
    const std::string fqn = is_head ? node.path : prefix + node.path;
    visit({fqn, node.path, *node.slot, is_head, is_head && model.tie_word_embeddings});
    return false;
  });
}

void Conversion::skip(const std::string& fqn, const std::string& reason) {
  skipped_.push_back(fmt::format("{} ({})", fqn, reason));
}

void Conversion::finish(std::vector<ConversionNote>& notes, const std::string& what) const {
  constexpr size_t kListed = 10;
  const size_t listed = std::min(skipped_.size(), kListed);
  std::string skipped;
  if (listed > 0)
    skipped = fmt::format(
        "; skipped: {}{}",
        fmt::join(skipped_.begin(), skipped_.begin() + static_cast<std::ptrdiff_t>(listed), ", "),
        skipped_.size() > listed ? fmt::format(" and {} more", skipped_.size() - listed) : "");
  const auto all = static_cast<size_t>(converted_) + skipped_.size();
  if (converted_ == 0)
    throw Error("{} converts none of the {} linear layers of the model{}", converter_, all,
                skipped);
  notes.push_back(
      {false, fmt::format("{}: {} of {} {}{}", converter_, converted_, all, what, skipped)});
}

}  // namespace rhea::models
