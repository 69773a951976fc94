#include "rhea/models/converters/freeze.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/base/text.h"
#include "rhea/config/glob.h"
#include "rhea/models/converters/convert.h"
#include "rhea/nn/trace.h"

namespace rhea {
namespace {

// What a step changes in the model, by a trace for one token.
struct Changed {
  std::vector<nn::Parameter> parameters;
  std::vector<std::string> fqns;  // of their parts, and of biases that follow the load of experts
};
Changed changed_by_a_step(const nn::Decoder::Config& model) {
  ir::Graph graph;
  nn::Trace trace(graph, {.num_tokens = 1, .seq_len = 1, .counts_load = true});
  nn::logits(trace, model);
  Changed changed{trace.parameters(), {}};
  for (const auto& parameter : changed.parameters)
    for (const auto& part : parameter.parts) changed.fqns.push_back(part.fqn);
  for (const auto& balance : trace.balances()) changed.fqns.push_back(balance.bias);
  return changed;
}

// Projections of which some are frozen and some are not get a weight each.
void split_mixed_projections(nn::Decoder::Config& model,
                             const std::vector<nn::Parameter>& parameters) {
  const nn::DecoderNames& names = *model.names;
  const std::string_view dot = names.prefix.empty() ? "" : ".";
  for (const auto& parameter : parameters) {
    if (!nn::is_partly_trainable(model.trainable, parameter)) continue;
    for (size_t i = 0; i < model.layers.size(); ++i) {
      if (!parameter.fqn.starts_with(fmt::format("{}{}{}.{}.", names.prefix, dot, names.layers, i)))
        continue;
      if (auto* attention = model.layers[i]->attention.as<nn::Attention::Config>())
        if (auto* qkv = attention->qkv_linear.as<nn::SplitQKV::Config>()) qkv->fused = false;
    }
  }
}

std::vector<ConversionNote> unmatched(const char* field, const std::vector<std::string>& globs,
                                      const std::vector<std::string>& fqns) {
  std::vector<ConversionNote> notes;
  for (const auto& text : globs) {
    const config::Glob glob(text);
    if (std::ranges::none_of(fqns, [&](const auto& fqn) { return glob.matches(fqn); }))
      notes.push_back({true, fmt::format("FreezeConverter {} '{}' matches no parameter; the model "
                                         "has parameters such as {}",
                                         field, text, fqns.front())});
  }
  return notes;
}

}  // namespace

void FreezeConverter::convert(Slot<Config>& slot, std::vector<ConversionNote>& notes) const {
  nn::Decoder::Config& model = models::decoder_of(slot, *this);
  const Changed changed = changed_by_a_step(model);
  const std::vector<std::string>& parts = changed.fqns;
  for (const auto& [field, globs] : {std::pair{"fqns", &fqns}, std::pair{"except", &except}})
    for (auto& note : unmatched(field, *globs, parts)) notes.push_back(std::move(note));

  const auto matches = [](const std::vector<std::string>& globs, const std::string& fqn) {
    return std::ranges::any_of(
        globs, [&](const std::string& glob) { return config::Glob(glob).matches(fqn); });
  };
  int64_t frozen = 0;
  std::vector<std::string> kept;
  for (const auto& fqn : parts) {
    if (!matches(fqns, fqn)) continue;
    if (matches(except, fqn)) {
      kept.push_back(fqn);
      continue;
    }
    ++frozen;
  }
  if (frozen == 0)
    throw Error(
        "FreezeConverter freezes nothing: fqns [{}] without [{}] match none of the {} parameters, "
        "such as {}",
        fmt::join(fqns, ", "), fmt::join(except, ", "), parts.size(), parts.front());
  for (const auto& glob : fqns) model.trainable.emplace_back(glob, false);
  for (const auto& glob : except) model.trainable.emplace_back(glob, true);
  split_mixed_projections(model, changed.parameters);
  constexpr size_t kListed = 10;
  const size_t listed = std::min(kept.size(), kListed);
  notes.push_back(
      {false, fmt::format("Froze {} of {} parameter tensors{}{}", frozen, parts.size(),
                          kept.empty() ? "" : fmt::format("; {} stay trainable: ", kept.size()),
                          fmt::join(kept.begin(),
                                    kept.begin() + static_cast<std::ptrdiff_t>(listed), ", "))});
}

void FreezeConverter::fields(Visitor& v) {
  v("fqns", fqns, "globs over FQNs of the parameters that are frozen");
  v("except", except, "globs of those that stay trainable");
}

}  // namespace rhea
