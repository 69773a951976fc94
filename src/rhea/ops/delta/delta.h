// What gated delta nets are made of: a short convolution along the tokens and a recurrence with a
// matrix as its state. Both begin anew at each document (where positions are 0) and at each row.
//
// T tokens in rows of seq_len, C channels, W taps, K key heads, N value heads (N/K for each key
// head), H elements of a key, V of a value. All in f32.
#pragma once
#include "rhea/ops/ops.h"

namespace rhea::ops {

// y[t,c] = sum over lags i < W of w[c, W-1-i] x[t-i, c], tokens of the same document only.
extern const OpDef kCausalConv;      // (x_TC, w_CW, positions i32 [T]), attr seq_len
extern const OpDef kCausalConvGrad;  // (x, w, positions, dy) -> dx, dw
Value causal_conv(Value x_TC, Value w_CW, Value positions_T, int64_t seq_len,
                  Where where = Where::current());

// For each value head, with a state S [H,V] that is 0 before the first token of a document:
//   S <- exp(g) S;  S <- S + k (beta (v - S^T k))^T;  o = S^T q
extern const OpDef
    kGatedDeltaRule;  // (q_TKH, k_TKH, v_TNV, g_TN, beta_TN, positions), attr seq_len
extern const OpDef kGatedDeltaRuleGrad;  // (the same, do_TNV) -> dq, dk, dv, dg, dbeta
Value gated_delta_rule(Value q_TKH, Value k_TKH, Value v_TNV, Value g_TN, Value beta_TN,
                       Value positions_T, int64_t seq_len, Where where = Where::current());

}  // namespace rhea::ops
