// D model dim, F hidden dim, N query heads, K kv heads, H head dim, V vocabulary
#include "rhea/models/decoder_sizes.h"

#include <cmath>

#include "rhea/base/error.h"
#include "rhea/models/parts.h"

namespace rhea::models {

using nn::Init;

Init linear_init() { return Init::truncated_normal(0.02, 2); }
Init depth_init(int64_t layer) {
  return Init::truncated_normal(0.02 / std::sqrt(2 * static_cast<double>(layer + 1)), 2);
}
Init head_init(int64_t dim) {
  const double std = 1 / std::sqrt(static_cast<double>(dim));
  return Init::truncated_normal(std, 3 * std);
}

namespace {

// Before anything is divided by one of them.
void check_sizes(const DecoderSizes& sizes) {
  const auto at_least = [](std::string_view field, int64_t value, int64_t least) {
    if (value < least) throw Error("{} is {}, expected at least {}", field, value, least);
  };
  at_least("dim", sizes.dim, 1);
  at_least("n_layers", sizes.n_layers, 1);
  at_least("n_heads", sizes.n_heads, 1);
  at_least("n_kv_heads", sizes.n_kv_heads, 1);
  at_least("head_dim", sizes.head_dim, 0);
  at_least("hidden_dim", sizes.hidden_dim, 1);
  at_least("vocab_size", sizes.vocab_size, 1);
  if (sizes.n_heads % sizes.n_kv_heads != 0)
    throw Error("n_heads ({}) must be a multiple of n_kv_heads ({})", sizes.n_heads,
                sizes.n_kv_heads);
  const ExpertSizes& experts = sizes.experts;
  at_least("experts.num_experts", experts.num_experts, 0);
  at_least("experts.top_k", experts.top_k, experts.num_experts > 0 ? 1 : 0);
  if (experts.num_experts == 0 && (experts.top_k > 0 || experts.load_balance_coeff))
    throw Error(
        "experts.num_experts is 0, but experts.top_k is {}{}; give it experts, or set `experts = "
        "{{}}` for a dense model",
        experts.top_k, experts.load_balance_coeff ? " and experts.load_balance_coeff is set" : "");
  if (experts.top_k > experts.num_experts)
    throw Error("experts.top_k ({}) must be at most experts.num_experts ({})", experts.top_k,
                experts.num_experts);
}

}  // namespace

nn::Decoder::Config make_decoder(const DecoderSizes& sizes, const nn::DecoderNames& names,
                                 const InitRules& init, const nn::RopeFields& rope) {
  const auto norm = [&](int64_t dim) { return rms_norm(dim, sizes.norm_eps); };
  check_sizes(sizes);
  const int64_t head_dim =
      sizes.head_dim != 0 ? sizes.head_dim : div_exact(sizes.dim, sizes.n_heads);
  nn::CosSinRoPE::Config turned;
  static_cast<nn::RopeFields&>(turned) = rope;
  if (turned.dim == 0) turned.dim = head_dim;

  nn::Decoder::Config model;
  model.names = &names;
  model.tie_word_embeddings = sizes.tied;
  model.tok_embeddings->num_embeddings = sizes.vocab_size;
  model.tok_embeddings->embedding_dim = sizes.dim;
  model.tok_embeddings->init = sizes.tied ? init.head : init.embedding;
  model.norm = norm(sizes.dim);
  model.lm_head = linear(sizes.dim, sizes.vocab_size, false, init.head);
  for (int64_t layer = 0; layer < sizes.n_layers; ++layer) {
    nn::TransformerBlock::Config block;
    block.names = &names;
    block.attention_norm = norm(sizes.dim);
    block.ffn_norm = norm(sizes.dim);

    nn::SplitQKV::Config qkv;
    qkv.names = &names;
    qkv.n_heads = sizes.n_heads;
    qkv.n_kv_heads = sizes.n_kv_heads;
    qkv.head_dim = head_dim;
    qkv.fused = sizes.fuse_qkv;
    qkv.wq = linear(sizes.dim, sizes.n_heads * head_dim, sizes.qkv_bias, init.qkv);
    qkv.wk = qkv.wv = linear(sizes.dim, sizes.n_kv_heads * head_dim, sizes.qkv_bias, init.qkv);
    nn::Attention::Config attention;
    attention.names = &names;
    attention.qkv_linear = qkv;
    attention.wo = linear(sizes.n_heads * head_dim, sizes.dim, sizes.o_bias, init.wo(layer));
    if (sizes.qk_norm) {
      attention.q_norm = norm(head_dim);
      attention.k_norm = norm(head_dim);
    }
    attention.rope = rotary(turned, sizes.interleaved_rope);
    block.attention = attention;

    nn::FeedForward::Config feed_forward;
    feed_forward.names = &names;
    feed_forward.w1 = linear(sizes.dim, sizes.hidden_dim, sizes.mlp_bias, init.w1);
    feed_forward.w3 = linear(sizes.dim, sizes.hidden_dim, sizes.mlp_bias, init.w3(layer));
    feed_forward.w2 = linear(sizes.hidden_dim, sizes.dim, sizes.mlp_bias, init.w2(layer));
    block.feed_forward = feed_forward;
    model.layers.push_back(block);
  }
  return model;
}

nn::MoE::Config make_mixture(const DecoderSizes& sizes, const nn::MoeNames& names, const Init& w1,
                             const Init& w2, const Init& w3) {
  nn::MoE::Config made;
  nn::Router::Config& router = *made.router;
  router.names = &names;
  router.num_experts = sizes.experts.num_experts;
  router.top_k = sizes.experts.top_k;
  router.normalize = sizes.experts.normalize;
  router.gate = linear(sizes.dim, router.num_experts, false, w1);
  made.load_balance_coeff = sizes.experts.load_balance_coeff;
  router.correction_bias = made.load_balance_coeff.has_value();
  nn::SplitExperts::Config experts;
  experts.names = &names;
  experts.num_experts = router.num_experts;
  experts.top_k = router.top_k;
  experts.dim = sizes.dim;
  experts.hidden_dim = sizes.hidden_dim;
  experts.w1_init = w1;
  experts.w2_init = w2;
  experts.w3_init = w3;
  made.routed_experts->inner_experts = experts;
  return made;
}

namespace {

// Of a block whose feed-forward is a mixture in make_mixture's form.
std::optional<ExpertSizes> experts_of(const nn::TransformerBlock::Config& block) {
  const auto* mixture = block.feed_forward.as<nn::MoE::Config>();
  if (mixture == nullptr) return {};
  const auto* experts = mixture->routed_experts->inner_experts.as<nn::SplitExperts::Config>();
  const nn::Router::Config& router = *mixture->router;
  if (experts == nullptr || mixture->shared_experts || router.score != "softmax" ||
      router.num_groups != 1 || router.gate->bias || router.scale != 1)
    return {};
  return ExpertSizes{router.num_experts, router.top_k, router.normalize,
                     mixture->load_balance_coeff};
}

}  // namespace

DecoderSizes sizes_of(const nn::Decoder::Config& model) {
  if (model.layers.empty()) throw Error("a model without layers has no sizes");
  const auto& block = *model.layers[0];
  const auto& attention = attention_of(block);
  const auto* qkv = attention.qkv_linear.as<nn::SplitQKV::Config>();
  const auto* feed_forward = block.feed_forward.as<nn::FeedForward::Config>();
  const auto experts = experts_of(block);
  if (qkv == nullptr || (feed_forward == nullptr && !experts) || !model.norm)
    throw Error("the decoder is of no form that Llama or Qwen3 has");
  return {.dim = model.tok_embeddings->embedding_dim,
          .n_layers = static_cast<int64_t>(model.layers.size()),
          .n_heads = qkv->n_heads,
          .n_kv_heads = qkv->n_kv_heads,
          .head_dim = qkv->head_dim,
          .hidden_dim = block.feed_forward->hidden_dim(),
          .vocab_size = model.vocab_size(),
          .tied = model.tie_word_embeddings,
          .qk_norm = static_cast<bool>(attention.q_norm),
          .qkv_bias = qkv->wq->bias,
          .o_bias = attention.wo->bias,
          .mlp_bias = feed_forward != nullptr && feed_forward->w1->bias,
          .norm_eps = model.norm->eps,
          .fuse_qkv = qkv->fused,
          .interleaved_rope = attention.rope.as<nn::ComplexRoPE::Config>() != nullptr,
          .experts = experts.value_or(ExpertSizes())};
}

int64_t permuted_head_dim(const nn::Decoder::Config& model) {
  const auto* attention =
      model.layers.empty() ? nullptr : model.layers[0]->attention.as<nn::Attention::Config>();
  return attention == nullptr ? 0 : attention->qkv_linear->head_dim;
}

const nn::RopeFields& rope_of(const nn::Decoder::Config& model) {
  const auto* rope =
      model.layers.empty() ? nullptr : attention_of(*model.layers[0]).rope.as<nn::RopeFields>();
  if (rope == nullptr) throw Error("the model has no rotary embedding");
  return *rope;
}

}  // namespace rhea::models
