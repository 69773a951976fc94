// The projections that make queries, keys and values.
//
// T tokens, D model dim, N query heads, K kv heads, H head dim
#pragma once
#include "rhea/nn/modules.h"

namespace rhea::nn {

struct QKV {
  // x_TD -> q_TNH, k_TKH, v_TKH; query head n uses kv head n / (N / K)
  struct Config : rhea::Config {
    const DecoderNames* names = &kNativeNames;  // what the family calls the parts
    int64_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
    // The heads.
    struct Result {
      Value q_TNH, k_TKH, v_TKH;  // in x's dtype
      Value gate_TNH = {};        // of the attention's output, before its sigmoid; not valid: none
    };
    // Its values, for nn::call.
    template <class F>
    friend void for_each_value(const Trace&, Result& r, const F& f) {
      for (Value* value : {&r.q_TNH, &r.k_TKH, &r.v_TKH, &r.gate_TNH}) f(*value);
    }
    virtual Result forward(Trace& trace, Value x_TD) const = 0;
    void fields(Visitor& v) override;

   protected:
    // Rows of the weight: of the queries; of the keys, and as many of the values.
    int64_t q_rows() const { return n_heads * head_dim; }
    int64_t kv_rows() const { return n_kv_heads * head_dim; }
    // The columns [begin, begin + count * H) of y as heads.
    Value heads(Value y, int64_t begin, int64_t count) const;
  };
};

struct SplitQKV {
  // wq x, wk x, wv x. `fused`: one weight [(N+2K)H, D], rows q then k then v, so that one product
  // makes all three and its slices need no copy. Checkpoints hold the parts wq, wk, wv either way
  // and initial weights are equal. A projection that is no plain Linear, or a wrapper of one, is
  // never fused.
  struct Config : QKV::Config {
    bool fused = true;
    Slot<Linear::Config> wq, wk, wv;
    Result forward(Trace& trace, Value x_TD) const override;
    void fields(Visitor& v) override;
  };
};

struct JoinedQKV {
  // One matrix as published files have it, in one of two orders of rows.
  struct Config : QKV::Config {
    Slot<Linear::Config> wqkv;
    // false: all of q, all of k, all of v. true: for each kv head its N/K query heads, its key
    // head, its value head.
    bool by_kv_head = false;
    Result forward(Trace& trace, Value x_TD) const override;
    void fields(Visitor& v) override;
  };
};

}  // namespace rhea::nn
