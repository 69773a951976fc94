// Grouped-query attention with its projections, query-key norms and rotary embedding.
#pragma once
#include "rhea/nn/modules.h"

namespace rhea::nn {

struct QKV {
  // x_TD -> q_TNH, k_TKH, v_TKH. `fused`: one weight [(N+2K)H, D], rows q then k then v, so that
  // one product makes all three and its slices need no copy. Checkpoints hold the parts wq, wk, wv
  // either way and initial weights are equal.
  struct Config : rhea::Config {
    const DecoderNames* names = &kNativeNames;
    int64_t dim = 0;
    int64_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
    bool bias = false;
    bool fused = true;
    InitConfig init;
    struct Result {
      Value q_TNH, k_TKH, v_TKH;
    };
    virtual Result forward(Trace& trace, Value x_TD) const;
    void fields(Visitor& v) override;

   private:
    Value project(Trace& trace, Value x_TD,
                  const std::vector<std::pair<std::string_view, int64_t>>& parts,
                  std::string_view own_name) const;
  };
};

struct Attention {
  // wo(attention(rope(norm(q)), rope(norm(k)), v))
  struct Config : rhea::Config {
    const DecoderNames* names = &kNativeNames;
    Slot<QKV::Config> qkv_linear;
    Slot<Linear::Config> wo;
    bool qk_norm = false;
    Slot<RMSNorm::Config> q_norm, k_norm;
    Slot<RoPE::Config> rope;
    double scale = 0;  // 0: head_dim^-0.5
    int64_t sliding_window = 0;
    double softcap = 0;
    bool document_mask = true;  // tokens see their own document only
    virtual Value forward(Trace& trace, Value x_TD) const;
    void fields(Visitor& v) override;
  };
};

}  // namespace rhea::nn
