#include "rhea/models/converters/lora.h"

#include <fmt/ranges.h>

#include <set>

#include "rhea/base/error.h"
#include "rhea/models/converters/convert.h"
#include "rhea/nn/lora_linear.h"

namespace rhea {
namespace {

// ['wq', 'wv']
std::string quoted_words(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", word);
  return fmt::format("[{}]", text);
}

// "16.0"
std::string with_point(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

void check(const LoRAConverter& converter) {
  if (converter.rank <= 0) throw Error("LoRA rank must be positive, got {}", converter.rank);
  if (!(converter.alpha > 0))
    throw Error("LoRA alpha must be positive, got {}", with_point(converter.alpha));
  if (converter.dropout != 0)
    throw Error("LoRA dropout must be 0, got {}: Rhea has no random masks inside a step",
                with_point(converter.dropout));
}

}  // namespace

void LoRAConverter::convert(Slot<Config>& slot, std::vector<ConversionNote>& notes) const {
  check(*this);
  nn::Decoder::Config& model = models::decoder_of(slot, *this);
  std::set<std::string> used;
  models::Conversion report("LoRAConverter");
  models::for_each_linear(model, [&](const models::LinearNode& node) {
    bool wanted = target_modules.empty();
    for (const auto& target : target_modules) {
      if (!node.matches(target)) continue;
      used.insert(target);
      wanted = true;
    }
    const auto& linear = static_cast<const nn::Linear::Config&>(*node.slot.get());
    if (!wanted)
      report.skip(node.fqn, "not in target_modules");
    else if (node.is_tied_head)
      report.skip(node.fqn, "its weight is the embedding's");
    else if (dynamic_cast<const nn::LoRALinear::Config*>(&linear) != nullptr)
      report.skip(node.fqn, "has an adapter");
    else {
      node.slot.replace(Slot<nn::Linear::Config>(nn::LoRALinear::Config(node.slot, rank, alpha)));
      report.convert();
    }
  });
  std::vector<std::string> unmatched;
  for (const auto& target : target_modules)
    if (!used.contains(target)) unmatched.push_back(target);
  const std::string warning = fmt::format(
      "LoRA target_modules {} did not match any Linear.Config in the model config tree.",
      quoted_words(unmatched));
  if (!target_modules.empty() && used.empty()) throw Error("{}", warning);
  if (!unmatched.empty()) notes.push_back({true, warning});
  notes.push_back(
      {false,
       fmt::format("LoRA training active with rank={}, alpha={}{}", rank, with_point(alpha),
                   target_modules.empty() ? " (all Linear layers)"
                                          : ", target_modules=" + quoted_words(target_modules))});
  report.finish(notes, "linear layers have an adapter");
  model.trainable.emplace_back("*", false);
  model.trainable.emplace_back("*.lora_a.weight", true);
  model.trainable.emplace_back("*.lora_b.weight", true);
}

void LoRAConverter::fields(Visitor& v) {
  v("rank", rank, "rows of A and columns of B");
  v("alpha", alpha, "the adapter counts alpha / rank");
  v("target_modules", target_modules, "last segments, ends or globs of FQNs; empty = all");
  v("dropout", dropout, "0");
}

}  // namespace rhea
