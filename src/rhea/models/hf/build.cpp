#include "rhea/models/hf/build.h"

#include <fmt/ranges.h>

#include "rhea/nn/activation.h"

namespace rhea::models::hf {

int64_t head_dim(const DecoderSizes& sizes) {
  return sizes.head_dim != 0 ? sizes.head_dim : sizes.dim / sizes.n_heads;
}

DecoderSizes read_sizes(Fields& fields) {
  DecoderSizes sizes;
  sizes.dim = fields.integer("hidden_size");
  sizes.n_layers = fields.integer("num_hidden_layers", kMostLayers);
  sizes.n_heads = fields.integer("num_attention_heads");
  sizes.n_kv_heads = fields.maybe_integer("num_key_value_heads").value_or(sizes.n_heads);
  if (sizes.n_heads % sizes.n_kv_heads != 0)
    throw fields.error(
        fmt::format("num_attention_heads ({}) must be a multiple of num_key_value_heads ({})",
                    sizes.n_heads, sizes.n_kv_heads));
  sizes.head_dim = fields.maybe_integer("head_dim").value_or(0);
  if (sizes.head_dim == 0 && sizes.dim % sizes.n_heads != 0)
    throw fields.error(fmt::format(
        "head_dim is absent and hidden_size ({}) is not divisible by num_attention_heads ({})",
        sizes.dim, sizes.n_heads));
  sizes.head_dim = head_dim(sizes);
  sizes.hidden_dim = fields.integer("intermediate_size");
  sizes.vocab_size = fields.integer("vocab_size", kLargestVocabulary);
  sizes.norm_eps = read_eps(fields);
  sizes.tied = fields.flag("tie_word_embeddings");
  fields.dropout({"attention_dropout"});
  fields.only("is_encoder_decoder", "false");
  fields.only("chunk_size_feed_forward", "0");
  fields.ignore({"is_decoder"});  // causal either way
  return sizes;
}

std::string read_activation(Fields& fields, std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"silu", "silu"},
      {"swish", "silu"},
      {"gelu", "gelu"},
      {"gelu_new", "gelu_tanh"},
      {"gelu_fast", "gelu_tanh"},
      {"gelu_pytorch_tanh", "gelu_tanh"},
      {"quick_gelu", "quick_gelu"},
      {"relu", "relu"},
      {"relu2", "relu2"},
      {"sigmoid", "sigmoid"},
      {"tanh", "tanh"},
      {"linear", "linear"}};
  const std::string given = fields.text(name);
  std::vector<std::string_view> known;
  for (const auto& [published, ours] : kNames) {
    if (given == published) return std::string(ours);
    known.push_back(published);
  }
  throw fields.error(
      fmt::format("{} '{}' is not supported; supported: {}", name, given, fmt::join(known, ", ")));
}

double maybe_positive(Fields& fields, std::string_view name) {
  const auto value = fields.maybe_number(name);
  if (value && !(*value > 0))
    throw fields.error(fmt::format("{} must be above 0, got {}", name, *value));
  return value.value_or(0);
}

double read_eps(Fields& fields) {
  const auto name = fields.name_of("rms_norm_eps");
  const double eps = fields.number_or(name, 1e-5);
  if (!(eps >= 0 && eps <= 1))
    throw fields.error(fmt::format("{} must lie in [0, 1], got {}", name, eps));
  return eps;
}

double read_positive(Fields& fields, std::string_view name) {
  const double value = maybe_positive(fields, name);
  return value > 0 ? value : fields.number(name);
}

InitRules init_rules(int64_t dim) {
  return {.embedding = nn::Init::normal(1),
          .head = head_init(dim),
          .qkv = linear_init(),
          .w1 = linear_init(),
          .wo = depth_init,
          .w2 = depth_init,
          .w3 = depth_init};
}

nn::Decoder::Config llama_decoder(const DecoderSizes& sizes, const nn::RopeFields& rope,
                                  const nn::DecoderNames& names) {
  const InitRules init = init_rules(sizes.dim);
  auto model = make_decoder(sizes, names, init, rope);
  for (int64_t i = 0; i < sizes.n_layers && sizes.experts.num_experts > 0; ++i)
    model.layers[static_cast<size_t>(i)]->feed_forward =
        make_mixture(sizes, nn::kHuggingFaceMoeNames, init.w1, init.w2(i), init.w3(i));
  return model;
}

void for_each_block(nn::Decoder::Config& model,
                    const std::function<void(nn::TransformerBlock::Config&, nn::Attention::Config&,
                                             int64_t)>& change) {
  for (size_t i = 0; i < model.layers.size(); ++i) {
    nn::TransformerBlock::Config& block = *model.layers[i];
    change(block, attention_of(block), static_cast<int64_t>(i));
  }
}

std::vector<bool> read_sliding_layers(Fields& fields, int64_t n_layers, int64_t window,
                                      const std::function<bool(int64_t)>& rule) {
  const auto types = fields.texts("layer_types");
  std::vector<bool> sliding;
  if (types.empty()) {
    for (int64_t i = 0; i < n_layers; ++i) sliding.push_back(rule(i));
    return sliding;
  }
  if (static_cast<int64_t>(types.size()) != n_layers)
    throw fields.error(fmt::format("layer_types has {} entries for num_hidden_layers = {}",
                                   types.size(), n_layers));
  for (const auto& type : types) {
    if (type != "full_attention" && type != "sliding_attention")
      throw fields.error(fmt::format(
          "layer_types holds '{}'; supported: full_attention, sliding_attention", type));
    sliding.push_back(type == "sliding_attention");
    if (sliding.back() && window == 0)
      throw fields.error(
          "layer_types names layers with sliding_attention, but nothing slides: sliding_window is "
          "0, null or absent, or use_sliding_window is false");
  }
  return sliding;
}

int64_t read_window(Fields& fields, int64_t lowest) {
  return fields.maybe_integer("sliding_window", kMostPositions, lowest).value_or(0);
}

void set_windows(nn::Decoder::Config& model, int64_t window, const std::vector<bool>& sliding) {
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t layer) {
    if (sliding[static_cast<size_t>(layer)]) attention.sliding_window = window;
  });
}

void set_ropes(nn::Decoder::Config& model, const LayerRopes& ropes,
               const std::vector<bool>& sliding) {
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t layer) {
    const bool interleaved = attention.rope.as<nn::ComplexRoPE::Config>() != nullptr;
    attention.rope =
        rotary(sliding[static_cast<size_t>(layer)] ? ropes.sliding : ropes.full, interleaved);
  });
}

void norm_full_width(nn::Decoder::Config& model, const DecoderSizes& sizes) {
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t) {
    attention.q_norm = rms_norm(sizes.n_heads * sizes.head_dim, sizes.norm_eps);
    attention.k_norm = rms_norm(sizes.n_kv_heads * sizes.head_dim, sizes.norm_eps);
    attention.norm_full_width = true;
  });
}

void set_activation(nn::Decoder::Config& model, const std::string& activation) {
  for_each_block(model, [&](nn::TransformerBlock::Config& block, auto&, int64_t) {
    if (auto* feed_forward = block.feed_forward.as<nn::FeedForward::Config>())
      feed_forward->activation = activation;
  });
}

void set_plain_feed_forward(nn::Decoder::Config& model, Slot<nn::PlainFeedForward::Config> form) {
  for_each_block(model, [&](nn::TransformerBlock::Config& block, auto&, int64_t) {
    const auto* gated = block.feed_forward.as<nn::FeedForward::Config>();
    RHEA_CHECK(gated != nullptr, "set_plain_feed_forward: the feed-forward is no gated one");
    form->names = gated->names;
    form->w1 = gated->names->w1 == gated->names->w3 ? gated->w3 : gated->w1;
    form->w2 = gated->w2;
    SlotBase& slot = block.feed_forward;
    slot.replace(form);
  });
}

void set_plain_feed_forward(nn::Decoder::Config& model, const std::string& activation) {
  nn::PlainFeedForward::Config form;
  form.activation = activation;
  set_plain_feed_forward(model, form);
}

void join_qkv(nn::Decoder::Config& model) {
  for_each_block(model, [](auto&, nn::Attention::Config& attention, int64_t) {
    const auto* split = attention.qkv_linear.as<nn::SplitQKV::Config>();
    RHEA_CHECK(split != nullptr, "join_qkv: the projections are joined already");
    nn::JoinedQKV::Config joined;
    static_cast<nn::QKV::Config&>(joined) = *split;
    joined.wqkv =
        linear(split->wq->in_features, split->wq->out_features + 2 * split->wk->out_features,
               split->wq->bias, split->wq->init.init());
    attention.qkv_linear = joined;
  });
}

void join_gate_up(nn::Decoder::Config& model) {
  for_each_block(model, [](nn::TransformerBlock::Config& block, auto&, int64_t) {
    const auto* split = block.feed_forward.as<nn::FeedForward::Config>();
    RHEA_CHECK(split != nullptr, "join_gate_up: the feed-forward is no gated one");
    nn::JoinedFeedForward::Config joined;
    joined.names = split->names;
    joined.activation = split->activation;
    // One tensor has one rule: that of the up projection.
    joined.w13 = linear(split->w1->in_features, 2 * split->w1->out_features, split->w1->bias,
                        split->w3->init.init());
    joined.w2 = split->w2;
    block.feed_forward = joined;
  });
}

}  // namespace rhea::models::hf
