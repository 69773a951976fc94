// Products in 8-bit floating point, emulated: operands are scaled, rounded to the format's values
// and scaled back, the product is one of f32.
#pragma once
#include <string_view>

#include "rhea/ir/graph.h"
#include "rhea/ir/op_def.h"
#include "rhea/ops/float8/round.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {

// Elementwise: to the nearest value of a format (attr format: Float8), saturating. Has no gradient.
extern const OpDef kRoundFloat8;
Value round_float8(Value x, Float8 format, Where where = Where::current());

// x, f32, as its 8-bit form stands for it: rounded(x * scale) / scale with scale = the format's
// largest value / largest |x|, or 1 where all are 0. One scale for all elements along `dim`, or for
// the whole tensor when that is absent.
Value through_float8(Value x, Float8 format, std::optional<int64_t> dim,
                     Where where = Where::current());

// y_TN = x_TK w_NK^T in x's dtype, with gradients in low precision as well. Attr recipe:
//   rowwise             e4m3, a scale for each row of every operand
//   rowwise_with_gw_hp  the same; the weight's gradient from dy and x as they are, and the input's
//                       from w with one scale
//   tensorwise          one scale for each operand; e4m3, and e5m2 for dy
enum class Float8Recipe : int64_t { rowwise, rowwise_with_gw_hp, tensorwise };
extern const OpDef kFloat8Linear;
Value float8_linear(Value x_TK, Value w_NK, Float8Recipe recipe, Where where = Where::current());

}  // namespace rhea::ops
