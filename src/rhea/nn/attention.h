// Grouped-query attention with its projections, query-key norms and rotary embedding.
#pragma once
#include "rhea/nn/alibi.h"
#include "rhea/nn/feed_forward.h"
#include "rhea/nn/norm.h"
#include "rhea/nn/qkv.h"

namespace rhea::nn {

struct Attention {
  // wo(attention(rope(norm(q)), rope(norm(k)), v)), the attention's output times sigmoid(gate)
  // where the projections make a gate; an empty slot leaves its step out
  struct Config : Branch::Config {
    const DecoderNames* names = &kNativeNames;  // what the family calls the parts
    Slot<QKV::Config> qkv_linear;
    Slot<Linear::Config> wo;
    Slot<Norm::Config> q_norm, k_norm;
    bool norm_full_width = false;  // over all heads together, not over each
    bool norm_after_rope = false;
    double clip_qkv = 0;  // bound of the elements of q, k and v before rope, 0 = none
    Slot<RoPE::Config> rope;
    Slot<PositionBias::Config> position_bias;
    double scale = 0;  // 0: head_dim^-0.5
    int64_t sliding_window = 0;
    double softcap = 0;
    bool sinks = false;  // a learned logit per head in the denominator
    InitConfig sinks_init;
    bool document_mask = true;  // tokens see their own document only
    Value forward(Trace& trace, Value x_TD) const override;
    int64_t score_width() const override { return qkv_linear->n_heads * 2 * qkv_linear->head_dim; }
    void fields(Visitor& v) override;

   private:
    Value normed(Trace& trace, std::string_view name, const Slot<Norm::Config>& norm,
                 Value heads) const;
    void prepare(Trace& trace, QKV::Config::Result& qkv) const;
    Value attend(Trace& trace, const QKV::Config::Result& qkv) const;
  };
};

}  // namespace rhea::nn
