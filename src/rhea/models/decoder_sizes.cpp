// D model dim, F hidden dim, N query heads, K kv heads, H head dim, V vocabulary
#include "rhea/models/decoder_sizes.h"

#include <cmath>

#include "rhea/base/error.h"

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

nn::Decoder::Config make_decoder(const DecoderSizes& sizes, const nn::DecoderNames& names,
                                 const InitRules& init, const nn::RopeFields& rope) {
  const auto linear = [](int64_t in, int64_t out, bool bias, const Init& rule) {
    nn::Linear::Config made;
    made.in_features = in;
    made.out_features = out;
    made.bias = bias;
    made.init = rule;
    return made;
  };
  const auto norm = [&](int64_t dim) {
    nn::RMSNorm::Config made;
    made.dim = dim;
    made.eps = sizes.norm_eps;
    return made;
  };
  const int64_t head_dim =
      sizes.head_dim != 0 ? sizes.head_dim : div_exact(sizes.dim, sizes.n_heads);
  if (sizes.n_kv_heads <= 0 || sizes.n_heads % sizes.n_kv_heads != 0)
    throw Error("n_heads ({}) must be a multiple of n_kv_heads ({})", sizes.n_heads,
                sizes.n_kv_heads);

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
    nn::Attention::Config& attention = *block.attention;
    attention.names = &names;
    nn::QKV::Config& qkv = *attention.qkv_linear;
    qkv.names = &names;
    qkv.dim = sizes.dim;
    qkv.n_heads = sizes.n_heads;
    qkv.n_kv_heads = sizes.n_kv_heads;
    qkv.head_dim = head_dim;
    qkv.bias = sizes.qkv_bias;
    qkv.fused = sizes.fuse_qkv;
    qkv.init = init.qkv;
    attention.wo = linear(sizes.n_heads * head_dim, sizes.dim, sizes.o_bias, init.wo(layer));
    attention.qk_norm = sizes.qk_norm;
    attention.q_norm = norm(head_dim);
    attention.k_norm = norm(head_dim);
    if (sizes.interleaved_rope) {
      nn::ComplexRoPE::Config filled;
      static_cast<nn::RopeFields&>(filled) = rope;
      filled.dim = head_dim;
      attention.rope = filled;
    } else {
      nn::CosSinRoPE::Config filled;
      static_cast<nn::RopeFields&>(filled) = rope;
      filled.dim = head_dim;
      attention.rope = filled;
    }
    nn::FeedForward::Config& feed_forward = *block.feed_forward;
    feed_forward.names = &names;
    feed_forward.w1 = linear(sizes.dim, sizes.hidden_dim, sizes.mlp_bias, init.w1);
    feed_forward.w3 = linear(sizes.dim, sizes.hidden_dim, sizes.mlp_bias, init.w3(layer));
    feed_forward.w2 = linear(sizes.hidden_dim, sizes.dim, sizes.mlp_bias, init.w2(layer));
    model.layers.push_back(block);
  }
  return model;
}

}  // namespace rhea::models
