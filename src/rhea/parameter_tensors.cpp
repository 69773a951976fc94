#include "rhea/parameter_tensors.h"

#include <algorithm>
#include <numeric>

#include "rhea/base/error.h"
#include "rhea/components/checkpoint/adapters.h"
#include "rhea/models/decoder_sizes.h"
#include "rhea/models/registry.h"

namespace rhea {
namespace {

// Rotary frequencies and causal masks, which older files store as if they were weights.
bool is_table(const std::string& key) {
  constexpr const char* kTables[] = {"rotary_emb.inv_freq", ".attn.bias",
                                     ".attn.masked_bias",   ".attn.causal_mask",
                                     ".attention.bias",     ".attention.masked_bias"};
  return std::ranges::any_of(kTables, [&](const char* table) { return key.ends_with(table); });
}

}  // namespace

void add_parts(std::vector<checkpoint::NamedTensor>& out, const nn::Parameter& parameter,
               DType dtype, void* data, const std::string& prefix, const std::string& suffix) {
  const int64_t rows = parameter.shape.empty() ? 1 : parameter.shape[0];
  const int64_t row_bytes = ir::num_elements(parameter.shape) / rows * dtype_size(dtype);
  for (const auto& part : parameter.parts) {
    RHEA_CHECK(!part.block, "{} is no range of rows of {}", part.fqn, parameter.fqn);
    out.push_back({prefix + part.fqn + suffix, dtype, checkpoint_shape(parameter, part),
                   static_cast<char*>(data) + part.row_begin * row_bytes});
  }
}

void StockTensors::add(const nn::Parameter& parameter, DType dtype, void* data,
                       const std::string& prefix, const std::string& suffix) {
  nn::Parameter rows = parameter;
  std::erase_if(rows.parts, [](const auto& part) { return part.block.has_value(); });
  add_parts(tensors_, rows, dtype, data, prefix, suffix);
  for (const auto& part : parameter.parts) {
    if (!part.block) continue;
    const size_t tensor = copy_of(prefix + part.fqn + suffix, dtype, part.shape);
    pieces_.push_back({tensor, *part.block, data});
  }
}

// One copy for all pieces of a stock tensor.
size_t StockTensors::copy_of(const std::string& name, DType dtype, const ir::Shape& shape) {
  const auto at = std::ranges::find(tensors_, name, &checkpoint::NamedTensor::name);
  if (at != tensors_.end()) return static_cast<size_t>(at - tensors_.begin());
  const int64_t bytes = ir::num_elements(shape) * dtype_size(dtype);
  copies_.push_back(std::make_unique<std::byte[]>(static_cast<size_t>(bytes)));
  tensors_.push_back({name, dtype, shape, copies_.back().get()});
  return tensors_.size() - 1;
}

void StockTensors::gather() {
  for (const Piece& piece : pieces_) {
    const auto& tensor = tensors_[piece.tensor];
    nn::gather(piece.block, tensor.shape, dtype_size(tensor.dtype), piece.stored, tensor.data);
  }
}

void StockTensors::scatter() {
  for (const Piece& piece : pieces_) {
    const auto& tensor = tensors_[piece.tensor];
    nn::scatter(piece.block, tensor.shape, dtype_size(tensor.dtype), tensor.data, piece.stored);
  }
}

std::vector<checkpoint::HfPart> published_parts(std::span<const models::KeyRule> rules,
                                                const std::string& native,
                                                std::span<const int64_t> shape, int64_t head_dim) {
  const auto key = models::to_hf(rules, native);
  if (!key) throw Error("parameter {} has no Hugging Face name", native);
  const std::vector<int64_t> whole(shape.begin(), shape.end());
  if (key->form == models::KeyForm::permuted)
    return {{key->name, whole, checkpoint::half_split_rows(shape[0], head_dim)}};
  if (key->form != models::KeyForm::sliced) return {{key->name, whole}};
  std::vector<checkpoint::HfPart> slices;
  for (int64_t i = 0; i < shape[0]; ++i) {
    std::vector<int64_t> rows(static_cast<size_t>(shape[1]));
    std::iota(rows.begin(), rows.end(), i * shape[1]);
    slices.push_back({key->slice(i), {whole.begin() + 1, whole.end()}, std::move(rows)});
  }
  return slices;
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

std::vector<checkpoint::Adapter> adapters_of(const nn::Decoder::Config& model) {
  if (model.trainable.empty()) return {};  // adapters come with rules of what is frozen
  ir::Graph graph;
  nn::Trace trace(graph, {.num_tokens = 1, .seq_len = 1});
  nn::logits(trace, model);
  std::vector<checkpoint::Adapter> adapters;
  for (const auto& adapter : trace.adapters())
    adapters.push_back({adapter.module, adapter.rank, adapter.alpha, adapter.transposed});
  return adapters;
}

namespace {

checkpoint::KeyMap family_key_map(const ModelSpec& spec) {
  const auto& family = models::find_family(spec.name);
  const auto& model = models::decoder(spec);
  checkpoint::KeyMap map = published_key_map(model);
  if (family.key_rules.empty()) return map;
  const int64_t head_dim = models::permuted_head_dim(model);
  map.to_hf = [rules = family.key_rules, head_dim](const std::string& native,
                                                   std::span<const int64_t> shape) {
    const auto key = models::to_hf(rules, native);
    return key && key->form == models::KeyForm::absent
               ? std::vector<checkpoint::HfPart>()
               : published_parts(rules, native, shape, head_dim);
  };
  return map;
}

}  // namespace

checkpoint::KeyMap make_key_map(const ModelSpec& spec) {
  checkpoint::KeyMap map = family_key_map(spec);
  map.adapters = adapters_of(models::decoder(spec));
  if (map.adapters.empty()) return map;
  map.to_hf = [of_base = map.to_hf](const std::string& native, std::span<const int64_t> shape) {
    return checkpoint::is_adapter(native) ? std::vector<checkpoint::HfPart>()
                                          : of_base(native, shape);
  };
  return map;
}

}  // namespace rhea
