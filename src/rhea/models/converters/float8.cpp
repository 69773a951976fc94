#include "rhea/models/converters/float8.h"

#include <set>

#include "rhea/base/error.h"
#include "rhea/models/converters/convert.h"
#include "rhea/nn/float8_linear.h"
#include "rhea/nn/transposed_linear.h"

namespace rhea {
namespace {

constexpr const char* kAutoFilter = "auto_filter_small_kn";

// Where scaling and casting cost more than the faster product saves, as measured on an H100 for
// torchao.
bool is_small(const nn::Linear::Config& linear, const std::string& recipe) {
  const int64_t k = linear.in_features, n = linear.out_features;
  if (recipe == "tensorwise") return k <= 4096 && n <= 1024;
  return n <= 2048 || k <= 1024 || (n <= 4096 && k <= 2048);
}

bool is_plain(const nn::Linear::Config& linear) {
  return typeid(linear) == typeid(nn::Linear::Config) ||
         typeid(linear) == typeid(nn::TransposedLinear::Config);
}

}  // namespace

void Float8LinearConverter::convert(Slot<Config>& slot, std::vector<ConversionNote>& notes) const {
  nn::Decoder::Config& model = models::decoder_of(slot, *this);
  std::set<std::string> used;
  models::Conversion report(name());
  models::for_each_linear(model, [&](const models::LinearNode& node) {
    const auto& linear = static_cast<const nn::Linear::Config&>(*node.slot.get());
    std::string filter;
    for (const auto& text : filter_fqns) {
      const bool matches = text == kAutoFilter ? is_small(linear, recipe_name)
                                               : node.fqn.find(text) != std::string::npos;
      if (!matches) continue;
      used.insert(text);
      filter = text;
    }
    if (!filter.empty())
      report.skip(node.fqn, "filter " + filter);
    else if (node.is_tied_head)
      report.skip(node.fqn, "its weight is the embedding's");
    else if (!is_plain(linear))
      report.skip(node.fqn, "is a " + type_name(linear));
    else if (linear.in_features % 16 != 0 || linear.out_features % 16 != 0)
      report.skip(node.fqn, fmt::format("{} x {} is no multiple of 16", linear.out_features,
                                        linear.in_features));
    else {
      node.slot.replace(Slot<nn::Linear::Config>(nn::Float8Linear::Config(linear, recipe_name)));
      report.convert();
    }
  });
  for (const auto& text : filter_fqns)
    if (!used.contains(text))
      notes.push_back(
          {true,
           fmt::format("Float8LinearConverter filter_fqns '{}' matches no linear layer", text)});
  report.finish(notes,
                fmt::format("linear layers compute in float8 (recipe {}, emulated)", recipe_name));
}

void Float8LinearConverter::fields(Visitor& v) {
  v("recipe_name", recipe_name, "granularity of scales",
    one_of{"rowwise", "rowwise_with_gw_hp", "tensorwise"});
  v("filter_fqns", filter_fqns, "texts in the FQNs of layers that stay as they are");
  v("emulate", emulate, "emulate where the hardware has the format");
}

}  // namespace rhea
