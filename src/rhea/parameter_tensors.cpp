#include "rhea/parameter_tensors.h"

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/models/decoder_sizes.h"
#include "rhea/models/registry.h"

namespace rhea {
namespace {

// Rotary frequencies and causal masks, which older files store as if they were weights.
bool is_table(const std::string& key) {
  constexpr const char* kTables[] = {"rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias",
                                     ".attention.bias", ".attention.masked_bias"};
  return std::ranges::any_of(kTables, [&](const char* table) { return key.ends_with(table); });
}

}  // namespace

void add_parts(std::vector<checkpoint::NamedTensor>& out, const nn::Parameter& parameter,
               DType dtype, void* data, const std::string& prefix, const std::string& suffix) {
  const int64_t rows = parameter.shape.empty() ? 1 : parameter.shape[0];
  const int64_t row_bytes = ir::num_elements(parameter.shape) / rows * dtype_size(dtype);
  for (const auto& part : parameter.parts) {
    checkpoint::NamedTensor made{prefix + part.fqn + suffix, dtype, parameter.shape,
                                 static_cast<char*>(data) + part.row_begin * row_bytes};
    if (!part.shape.empty())
      made.shape = part.shape;
    else if (!made.shape.empty())
      made.shape[0] = part.row_end - part.row_begin;
    out.push_back(std::move(made));
  }
}

checkpoint::KeyMap published_key_map(const nn::Decoder::Config& model) {
  checkpoint::KeyMap map = checkpoint::identity_key_map();
  const nn::DecoderNames& names =
      model.names == &nn::kNativeNames ? nn::kHuggingFaceNames : *model.names;
  map.head = fmt::format("{}.weight", names.lm_head);
  if (model.tie_word_embeddings)
    map.tied = {{map.head, names.prefix.empty()
                               ? fmt::format("{}.weight", names.tok_embeddings)
                               : fmt::format("{}.{}.weight", names.prefix, names.tok_embeddings)}};
  std::vector<std::string> skipped;  // layers that the model leaves out
  for (int64_t i = 0; i < model.num_mtp_layers; ++i)
    skipped.push_back(fmt::format("{}.{}.{}.", names.prefix, names.layers,
                                  static_cast<int64_t>(model.layers.size()) + i));
  map.ignorable = [skipped](const std::string& key) {
    return is_table(key) ||
           std::any_of(skipped.begin(), skipped.end(),
                       [&](const std::string& layer) { return key.starts_with(layer); });
  };
  return map;
}

checkpoint::KeyMap make_key_map(const ModelSpec& spec) {
  const auto& family = models::find_family(spec.name);
  const auto& model = models::decoder(spec);
  checkpoint::KeyMap map = published_key_map(model);
  if (family.key_rules.empty()) return map;
  const int64_t head_dim = models::permuted_head_dim(model);
  map.to_hf = [rules = family.key_rules, head_dim](const std::string& native,
                                                   std::span<const int64_t> shape) {
    const auto key = models::to_hf(rules, native);
    if (!key) throw Error("parameter {} has no Hugging Face name", native);
    checkpoint::HfPart part{key->name, {shape.begin(), shape.end()}};
    if (key->permuted) part.rows = checkpoint::half_split_rows(shape[0], head_dim);
    return std::vector{part};
  };
  return map;
}

}  // namespace rhea
