// Linear attention with a gated delta rule, and attention whose output is gated: the two kinds of
// layers of Qwen3-Next.
//
// T tokens, D model dim, K key heads, N value heads, H elements of a key, V of a value
#pragma once
#include "rhea/nn/feed_forward.h"
#include "rhea/nn/norm.h"
#include "rhea/nn/qkv.h"

namespace rhea::nn {

struct GatedDeltaNet {
  // qkvz = in_proj x, per key head q, k, v and z of its value heads; q, k, v pass a causal
  // convolution and silu, q and k are divided by their 2-norm and q by sqrt(H); the recurrence is
  // ops::gated_delta_rule with beta = sigmoid(b), g = -exp(A_log) softplus(a + dt_bias); then
  // out_proj(norm(o) * silu(z)) over each value head.
  struct Config : Branch::Config {
    int64_t dim = 0, num_key_heads = 0, num_value_heads = 0, key_head_dim = 0, value_head_dim = 0;
    int64_t conv_taps = 4;
    InitConfig init;  // of in_proj_qkvz, in_proj_ba and the convolution
    Slot<Linear::Config> out_proj;
    double eps = 1e-6;
    Value forward(Trace& trace, Value x_TD) const override;
    bool one_token_at_a_time() const override { return true; }
    void fields(Visitor& v) override;

   private:
    struct Step {
      Value q_TKH, k_TKH, v_TNV, g_TN, beta_TN;
    };
    Value convolved(Trace& trace, Value qkv) const;
    Value one_convolved(Trace& trace, Value qkv, Value taps_CW) const;
    Value one_token(Trace& trace, const Step& step) const;
    Value decay(Trace& trace, Value a_TN) const;
    Value gated_norm(Trace& trace, Value o_TNV, Value z_TNV) const;
  };
};

struct GatedQKV {
  // Queries whose projection also gives a gate for the attention's output, per head q then gate.
  struct Config : QKV::Config {
    Slot<Linear::Config> wq, wk, wv;
    Result forward(Trace& trace, Value x_TD) const override;
    void fields(Visitor& v) override;
  };
};

}  // namespace rhea::nn
