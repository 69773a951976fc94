// Multi-head latent attention: keys and values of all heads are made from one narrow latent.
//
// T tokens, D model dim, N heads, C width of the latent
#pragma once
#include "rhea/nn/feed_forward.h"
#include "rhea/nn/norm.h"

namespace rhea::nn {

// What a family calls the parts.
struct LatentNames {
  // Queries: in one step, or to their latent, its norm and from there.
  std::string_view wq = "q_proj", wq_a = "q_a_proj", q_norm = "q_a_layernorm", wq_b = "q_b_proj";
  // Keys and values: to their latent, its norm and from there.
  std::string_view wkv_a = "kv_a_proj_with_mqa", kv_norm = "kv_a_layernorm", wkv_b = "kv_b_proj";
  std::string_view wo = "o_proj";  // output projection
};
// Those of published DeepSeek files.
extern const LatentNames kHuggingFaceLatentNames;

struct LatentAttention {
  // q = wq x, or wq_b(norm(wq_a x)) where q_lora_rank is above 0; each head nope then rope.
  // wkv_a x = [latent C, rope]; k_nope, v of each head = wkv_b(norm(latent)); the rotary part of
  // the key is one for all heads.
  struct Config : Branch::Config {
    const LatentNames* names = &kHuggingFaceLatentNames;  // what the family calls the parts
    int64_t n_heads = 0, q_lora_rank = 0, kv_lora_rank = 0;
    int64_t qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;
    Slot<Linear::Config> wq, wq_a, wq_b, wkv_a, wkv_b, wo;
    Slot<Norm::Config> q_norm, kv_norm;
    Slot<RoPE::Config> rope;
    double scale = 0;  // 0: (nope + rope)^-0.5
    bool document_mask = true;
    Value forward(Trace& trace, Value x_TD) const override;
    int64_t score_width() const override {
      return n_heads * (qk_nope_head_dim + qk_rope_head_dim + v_head_dim);
    }
    void fields(Visitor& v) override;

   protected:
    // What is made from x: queries, or their latent where q_lora_rank is above 0, and the latent of
    // keys and values with the rotary key behind it.
    struct Projected {
      Value q, kv;  // [T, ...] each
    };
    // The projections of x_TD, which an override may compute in another way.
    virtual Projected project(Trace& trace, Value x_TD) const;

   private:
    Value queries(Trace& trace, Value q) const;
  };
};

}  // namespace rhea::nn
