#include "rhea/models/converters/lora.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "rhea/base/error.h"
#include "rhea/config/traverse.h"
#include "rhea/models/converters/convert.h"
#include "rhea/nn/lora_linear.h"
#include "rhea/nn/moe.h"

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
  const bool whole = std::isfinite(value) && text.find_first_of(".e") == std::string::npos;
  return whole ? text + ".0" : text;
}

void check(const LoRAConverter& converter) {
  if (converter.rank <= 0) throw Error("LoRA rank must be positive, got {}", converter.rank);
  if (!(converter.alpha > 0) || !std::isfinite(converter.alpha))
    throw Error("LoRA alpha must be positive and finite, got {}", with_point(converter.alpha));
  // The model computes with it as f32.
  const double scale = converter.alpha / static_cast<double>(converter.rank);
  if (scale < std::numeric_limits<float>::min() || scale > std::numeric_limits<float>::max())
    throw Error("LoRA alpha {} / rank {} is {}, which is outside of what float32 holds",
                with_point(converter.alpha), converter.rank, scale);
  if (converter.dropout != 0)
    throw Error("LoRA dropout must be 0, got {}: Rhea has no random masks inside a step",
                with_point(converter.dropout));
}

// Layers that get an adapter against the rank: where it is above a size of the layer, a smaller one
// gives the same functions; where it is above both, the adapter would be the larger matrix.
class RankCheck {
 public:
  explicit RankCheck(int64_t rank) : rank_(rank) {}

  void layer(const std::string& fqn, const nn::Linear::Config& linear) {
    const auto [least, most] = std::minmax(linear.in_features, linear.out_features);
    if (rank_ > most)
      throw Error(
          "LoRA rank {} is above both sizes of {} ({} x {}), so that its adapter would be larger "
          "than the layer; choose a rank of at most {}, or name other target_modules",
          rank_, fqn, linear.out_features, linear.in_features, least);
    if (rank_ <= least) return;
    ++num_above_;
    if (num_above_ == 1)
      first_ = fmt::format("{} ({} x {})", fqn, linear.out_features, linear.in_features);
  }
  void note(std::vector<ConversionNote>& notes) const {
    if (num_above_ == 0) return;
    notes.push_back({true, fmt::format("LoRA rank {} is above the smaller size of {} layer(s), "
                                       "where it adds parameters and nothing else, such as {}",
                                       rank_, num_above_, first_)});
  }

 private:
  int64_t rank_, num_above_ = 0;
  std::string first_;
};

int64_t num_balanced_layers(nn::Decoder::Config& model) {
  int64_t count = 0;
  config::traverse(model, [&](const config::Node& node) {
    const auto* mixture = dynamic_cast<const nn::MoE::Config*>(&node.config);
    if (mixture != nullptr && mixture->load_balance_coeff) ++count;
    return true;
  });
  return count;
}

}  // namespace

void LoRAConverter::convert(Slot<Config>& slot, std::vector<ConversionNote>& notes) const {
  check(*this);
  nn::Decoder::Config& model = models::decoder_of(slot, *this);
  std::set<std::string> used;
  models::Conversion report("LoRAConverter");
  RankCheck ranks(rank);
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
      ranks.layer(node.fqn, linear);
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
  ranks.note(notes);
  notes.push_back(
      {false,
       fmt::format("LoRA training active with rank={}, alpha={}{}", rank, with_point(alpha),
                   target_modules.empty() ? " (all Linear layers)"
                                          : ", target_modules=" + quoted_words(target_modules))});
  report.finish(notes, "linear layers have an adapter");
  if (const int64_t balanced = num_balanced_layers(model); balanced > 0)
    notes.push_back({false, fmt::format("LoRA freezes the bias that balances the experts of {} "
                                        "layer(s) with the rest of the base model",
                                        balanced)});
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
