// Rows that carry tokens to their experts and back, with static shapes: which row goes where, and
// how many rows an expert has, is data.
//
// T tokens, k experts of a token, R = T k rows, E experts, D model dim. A slot is a (token, j) pair
// with number t k + j.
#pragma once
#include <optional>

#include "rhea/ops/ops.h"

namespace rhea::ops {

// The rows of all slots in the order of their experts, ascending; rows of one expert in the order
// of their slots. Slots whose expert lies outside [0, E) get no row: they are dropped, and the rows
// that are left over stand at the end.
struct ExpertOrder {
  Value slots_R;    // i32: slot of each row; -1 for a row left over
  Value rows_Tk;    // i32: row of each slot; -1 for a dropped one
  Value experts_R;  // i32: expert of each row; E-1 for a row left over
  Value counts_E;   // i32: rows of each expert
};
// Attr experts: E.
extern const OpDef kExpertOrder;  // (experts i32 [T,k])
ExpertOrder expert_order(Value experts_Tk, int64_t num_experts, Where where = Where::current());

// y[r] = x[token of r], times weight[slot of r] where weights f32 [T,k] are given; 0 for a row left
// over. Rounded once to x's dtype.
extern const OpDef kDispatch;  // (x_TD, slots_R, rows_Tk[, weights_Tk])
Value dispatch(Value x_TD, const ExpertOrder& order, std::optional<Value> weights_Tk = {},
               Where where = Where::current());

// y[t] = sum over the slots of t of weight * x[row of slot] (weight 1 where none are given), in
// f32, experts ascending, rounded once to x's dtype. Dropped slots add nothing.
extern const OpDef kCombine;  // (x_RD, slots_R, rows_Tk[, weights_Tk])
Value combine(Value x_RD, const ExpertOrder& order, std::optional<Value> weights_Tk = {},
              Where where = Where::current());

// w[t,j] = sum over d of x[row of (t,j), d] * y[t, d] in f32: what the weights of combine get as
// their gradient. 0 for a dropped slot.
extern const OpDef kSlotDots;  // (x_RD, y_TD, slots_R, rows_Tk)

// Along the last dim: y[.., j] = x[.., index[.., j]], and its transpose, y[.., n] = sum over j
// ascending of x[.., j] where index[.., j] is n. Indices outside [0, N) read 0 and add nothing.
extern const OpDef kTakeLast;  // (x[.., N], index i32 [.., k])
extern const OpDef kPutLast;   // (x[.., k], index i32 [.., k]), attr size N
Value take_last(Value x, Value index, Where where = Where::current());
Value put_last(Value x, Value index, int64_t size, Where where = Where::current());

}  // namespace rhea::ops
