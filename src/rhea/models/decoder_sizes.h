// From a family's sizes and rules to the tree of module configs, and back.
#pragma once
#include <functional>
#include <optional>

#include "rhea/nn/decoder.h"
#include "rhea/nn/moe.h"

namespace rhea::models {

// What a step moves the bias that balances experts by, where nothing else is said.
inline constexpr double kLoadBalanceCoeff = 1e-3;

// Experts in the place of every layer's feed-forward, as Qwen3 has them: softmax over all, no
// shared ones.
struct ExpertSizes {
  int64_t num_experts = 0, top_k = 0;        // 0: dense
  bool normalize = true;                     // the weights of a token sum to 1
  std::optional<double> load_balance_coeff;  // absent: no bias that balances them
};

// What differs between the flavors of a family.
struct DecoderSizes {
  int64_t dim = 0;                // D
  int64_t n_layers = 0;           // blocks
  int64_t n_heads = 0;            // query heads
  int64_t n_kv_heads = 0;         // divides n_heads
  int64_t head_dim = 0;           // 0: dim / n_heads
  int64_t hidden_dim = 0;         // of the feed-forward, or of an expert
  int64_t vocab_size = 0;         // rows of the embedding
  bool tied = false;              // the head uses the embedding's matrix
  bool qk_norm = false;           // RMSNorm of each query and key head
  bool qkv_bias = false;          // of the three projections
  bool o_bias = false;            // of the output projection
  bool mlp_bias = false;          // of the feed-forward
  double norm_eps = 1e-5;         // of every norm
  bool fuse_qkv = true;           // SplitQKV::Config::fused
  bool interleaved_rope = false;  // pairs (2i, 2i + 1), not (i, i + R/2)
  ExpertSizes experts;            // none: a dense model
};

// How each kind of matrix starts; layers count from 0. A tied matrix follows `head`.
struct InitRules {
  nn::Init embedding, head;                           // the two tables
  nn::Init qkv, w1;                                   // the same in every layer
  std::function<nn::Init(int64_t layer)> wo, w2, w3;  // by layer
};

// Truncated normals of the initialisation table: std 0.02 cut at 2; 0.02 / sqrt(2 (layer + 1)) cut
// at 2; D^-0.5 cut at 3 std.
nn::Init linear_init();
nn::Init depth_init(int64_t layer);
nn::Init head_init(int64_t dim);

// Blocks with RMSNorm before attention and feed-forward, split projections, rotary embedding of
// whole heads and a gated silu feed-forward: the form of Llama and Qwen3, which other families
// change.
nn::Decoder::Config make_decoder(const DecoderSizes& sizes, const nn::DecoderNames& names,
                                 const InitRules& init, const nn::RopeFields& rope);

// The experts of one layer under `names`, for the sizes of a decoder with some.
nn::MoE::Config make_mixture(const DecoderSizes& sizes, const nn::MoeNames& names,
                             const nn::Init& w1, const nn::Init& w2, const nn::Init& w3);

// The sizes of a decoder that make_decoder built, with make_mixture's in its layers where it has
// experts. Throws Error for one of another form.
DecoderSizes sizes_of(const nn::Decoder::Config& model);
// Head dim of projections whose rows are permuted in published files (KeyRule); 0 where there is no
// attention of that form.
int64_t permuted_head_dim(const nn::Decoder::Config& model);
// Its rotary embedding; throws Error where there is none.
const nn::RopeFields& rope_of(const nn::Decoder::Config& model);

}  // namespace rhea::models
