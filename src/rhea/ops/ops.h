// Every op row and the functions by which model code and passes add it to a graph.
// rhea/ops/table.cpp lists the rows.
//
// Letters: T tokens (all rows of the batch joined), S row length, N query heads, K kv heads, H head
// dim, D model dim, V vocabulary. Shapes are never broadcast silently: use broadcast_in_dim, or the
// scalar overloads, which make a splat constant. Arithmetic on bf16 and f16 computes in f32 and
// rounds once per op.
#pragma once
#include <optional>
#include <source_location>
#include <span>
#include <string_view>
#include <vector>

#include "rhea/ir/graph.h"

namespace rhea::ops {

using ir::OpDef;
using ir::Shape;
using ir::Value;
// The line of model code that adds a node, for messages.
using Where = std::source_location;

// All rows, in-tree ones first.
std::span<const OpDef* const> all_ops();
// The row of that name; null when unknown.
const OpDef* find_op(std::string_view name);

// ---- elementwise
// Of operands of one shape and dtype, element by element.
extern const OpDef kAdd, kSubtract, kMultiply, kDivide, kMaximum, kMinimum, kPower;
// Of one operand, element by element; logistic(x) = 1 / (1 + exp(-x)).
extern const OpDef kNegate, kExponential, kLog, kSqrt, kRsqrt, kTanh, kLogistic;
extern const OpDef kAbs, kSign, kSine, kCosine, kErf;
extern const OpDef kCompare;       // attr direction EQ NE LT LE GT GE; result bool
extern const OpDef kSelect;        // (bool, a, b)
extern const OpDef kConvert;       // attr dtype; round to nearest even
extern const OpDef kStopGradient;  // identity whose vjp is zero
// Of two values of one shape and dtype: a value of that type.
Value add(Value a, Value b, Where where = Where::current());
Value subtract(Value a, Value b, Where where = Where::current());
Value multiply(Value a, Value b, Where where = Where::current());
Value divide(Value a, Value b, Where where = Where::current());
Value maximum(Value a, Value b, Where where = Where::current());
Value minimum(Value a, Value b, Where where = Where::current());
Value power(Value a, Value b, Where where = Where::current());
// Of one value: a value of its type.
Value negate(Value x, Where where = Where::current());
Value exponential(Value x, Where where = Where::current());
Value log(Value x, Where where = Where::current());
Value sqrt(Value x, Where where = Where::current());
Value rsqrt(Value x, Where where = Where::current());
Value tanh(Value x, Where where = Where::current());
Value logistic(Value x, Where where = Where::current());
Value abs(Value x, Where where = Where::current());
Value sign(Value x, Where where = Where::current());
Value sine(Value x, Where where = Where::current());
Value cosine(Value x, Where where = Where::current());
Value erf(Value x, Where where = Where::current());
// bool of the shape; `direction` is EQ NE LT LE GT GE.
Value compare(Value a, Value b, std::string_view direction, Where where = Where::current());
// a where the condition holds, else b.
Value select(Value condition, Value a, Value b, Where where = Where::current());
// x in another dtype; x itself when it has it already.
Value convert(Value x, DType dtype, Where where = Where::current());
// x, through which no gradient flows.
Value stop_gradient(Value x, Where where = Where::current());
// With a number: the splat constant of x's type.
Value add(Value x, double number, Where where = Where::current());
Value multiply(Value x, double number, Where where = Where::current());

// ---- shapes
// Attrs shape, dims: result dim of each operand dim (operand dim 1 or equal).
extern const OpDef kBroadcastInDim;
extern const OpDef kReshape;      // attr shape
extern const OpDef kTranspose;    // attr permutation
extern const OpDef kSlice;        // attrs start, limit (per dim), stride 1
extern const OpDef kConcatenate;  // attr dim; variadic
extern const OpDef kPad;          // attrs low, high (per dim); zeros
extern const OpDef kIota;         // attrs shape, dtype, dim
// Attr dims (ascending, removed); bf16 and f16 accumulate in f32, f32 in f32 with a fixed tree.
extern const OpDef kReduceSum, kReduceMax;
// x repeated along the dims of `shape` that `dims` does not name, and along its own of size 1.
Value broadcast_in_dim(Value x, Shape shape, std::vector<int64_t> dims,
                       Where where = Where::current());
// The same elements in order, as `shape`.
Value reshape(Value x, Shape shape, Where where = Where::current());
// Result dim i is dim permutation[i] of x.
Value transpose(Value x, std::vector<int64_t> permutation, Where where = Where::current());
// Elements [start, limit) of every dim.
Value slice(Value x, std::vector<int64_t> start, std::vector<int64_t> limit,
            Where where = Where::current());
// Elements [start, limit) of one dim.
Value slice_dim(Value x, int64_t dim, int64_t start, int64_t limit, Where where = Where::current());
// The parts one after the other along `dim`; their other dims are equal.
Value concatenate(std::span<const Value> parts, int64_t dim, Where where = Where::current());
// Zeros before and behind, per dim.
Value pad(Value x, std::vector<int64_t> low, std::vector<int64_t> high,
          Where where = Where::current());
// 0, 1, 2, ... along `dim`.
Value iota(ir::Graph& graph, Shape shape, DType dtype, int64_t dim, Where where = Where::current());
// Without `dims`, which are ascending.
Value reduce_sum(Value x, std::vector<int64_t> dims, Where where = Where::current());
Value reduce_max(Value x, std::vector<int64_t> dims, Where where = Where::current());

// ---- products
// a and b have rank 2 (or equal leading batch dims before the last two). lhs_contract /
// rhs_contract: 0 or 1, which of the last two dims is summed. Result [batch.., free of a, free of
// b] in `dtype`; accumulation f32 (f64 for f64).
//   linear       y_TN = x_TK w_NK^T       contract 1,1
//   its input    dx_TK = dy_TN w_NK       contract 1,0
//   its weight   dw_NK = dy_TN^T x_TK     contract 0,0, dtype f32
// b may have a packed layout: panels_nk with contract 1,1 and panels_kn with contract 1,0.
extern const OpDef kDotGeneral;
Value dot_general(Value a, Value b, int64_t lhs_contract, int64_t rhs_contract, DType dtype,
                  Where where = Where::current());
// a [k,m], b [k,n], both f32 or both bf16, rows -> a^T b [m,n] f32, and the sum of its squares, f64
// []. No gradient: the pass norm_in_products puts it in place of a dot_general.
extern const OpDef kWeightGradSquares;
// a [k,m], b [k,n] like those, sum [m,n] f32 -> sum + a^T b, where `sum` lies if nobody else reads
// it. The bits are those of a dot_general and an add. No gradient: the pass add_in_products puts it
// in their place.
extern const OpDef kWeightGradAdd;
// y = x w^T over the last dim of x (any rank), result in x's dtype.
Value linear(Value x, Value w_NK, Where where = Where::current());
// Packed copy of a matrix for the right operand: layout panels_nk or panels_kn. No gradient: passes
// add it, models do not.
extern const OpDef kPack;  // attr layout (ir::Layout as integer)
Value pack(Value w, ir::Layout layout, Where where = Where::current());

// ---- tables by index
// y_TD = table_VD[ids_T]; ids outside [0,V) are the data loader's error. Gradient in f32, rows
// summed in token order, and added to the third operand, f32[V,D], where the node has one.
extern const OpDef kEmbedding, kEmbeddingGrad;  // grad: (dy_TD, ids_T) attr rows V -> f32[V,D]
// The rows of table_VD that ids_T name.
Value embedding(Value table_VD, Value ids_T, Where where = Where::current());

// ---- normalisation and activation
// y = x / sqrt(mean(x^2, last dim) + eps), computed in f32 and rounded to x's dtype, then *
// (weight_offset + w_D). Grad: (x, w, dy) -> dx in x's dtype, dw f32[D].
extern const OpDef kRmsNorm, kRmsNormGrad;  // attrs eps, weight_offset
Value rms_norm(Value x, Value w_D, double eps, double weight_offset = 0,
               Where where = Where::current());
// silu(x) = x * logistic(x). swiglu(g, u) = silu(g) * u, silu rounded to the dtype first. Grad: (g,
// u, dy) -> dg, du.
extern const OpDef kSilu, kSwiglu, kSwigluGrad;
Value silu(Value x, Where where = Where::current());
Value swiglu(Value gate, Value up, Where where = Where::current());
// gelu: attr approximate 0 (erf) or 1 (tanh).
extern const OpDef kGelu;
Value gelu(Value x, bool approximate, Where where = Where::current());
// Over the last dim; softmax in f32, rounded to the dtype. logsumexp removes the dim.
extern const OpDef kSoftmax, kLogSumExp;
Value softmax(Value x, Where where = Where::current());
Value logsumexp(Value x, Where where = Where::current());

// x[.., N] -> the k largest of each row, largest first, values[.., k] and their places i32 [.., k].
// NaN counts as the largest; among equals the lowest index comes first. vjp to the chosen elements.
extern const OpDef kTopK;  // attr k
std::vector<Value> top_k(Value x, int64_t k, Where where = Where::current());
// y = (x - mean) / sqrt(variance + eps) over the last dim, * w_D and + b_D where they are given.
// Operands (x, w_D, b_D), attr eps, flags has_weight, has_bias.
extern const OpDef kLayerNorm, kLayerNormGrad;
Value layer_norm(Value x, std::optional<Value> w_D, std::optional<Value> b_D, double eps,
                 Where where = Where::current());

// ---- rotary embedding
// Rotates the first 2P dims of each head of x_TNH by the angle of its token's position; the rest
// passes. Tables f32 [S,P] (cos and sin already scaled); positions i32 [T] index them. interleaved
// 1: pairs (2i, 2i+1); 0: (i, i+P). inverse 1 rotates back (the vjp). f32 arithmetic, rounded to
// x's dtype.
extern const OpDef kRope;
Value rope(Value x_TNH, Value cos_SP, Value sin_SP, Value positions_T, bool interleaved,
           bool inverse = false, Where where = Where::current());

// ---- attention
// The T tokens are rows of seq_len. Query t sees key s of its own row when s <= t; with
// `documents`, only within its document (positions_T restart at 0; a row start also starts one);
// with window w > 0 only t - s < w (by index). Scores (q.k) * scale, then cap * tanh(score / cap)
// when softcap > 0, then + bias[n][position of s] - bias[n][position of t] with a table bias_NP f32
// of constants (P >= seq_len; ALiBi: bias[n][p] = slope_n * p); an optional sink logit per head
// joins the denominator only. Query head n uses kv head n / (N/K). Rows without a visible key give
// 0. Scores, softmax and sums in f32. Results: o [T,N,V], lse f32 [T,N] (log of the denominator,
// natural log). No [tokens, tokens] buffer.
extern const OpDef kAttention;      // operands q,k,v,positions[,sink][,bias]; attrs scale, seq_len,
                                    // window, softcap, documents, has_sink, has_bias
extern const OpDef kAttentionGrad;  // q,k,v,positions[,sink][,bias],o,lse,do
                                    // -> dq,dk,dv (dtype of q)[,dsink f32]
// The attributes of attention, as above.
struct AttentionOptions {
  double scale = 1;       // of q.k
  int64_t seq_len = 0;    // S; T is a multiple of it
  int64_t window = 0;     // 0: none
  double softcap = 0;     // 0: none
  bool documents = true;  // tokens see their own document only
};
// The first result of kAttention, o [T, N, V]. `positions_T` i32; `sink_N` f32 or q's dtype.
Value attention(Value q_TNH, Value k_TKH, Value v_TKV, Value positions_T,
                const AttentionOptions& options, std::optional<Value> sink_N = {},
                std::optional<Value> bias_NP = {}, Where where = Where::current());

// ---- generation
// operand [C, ..] with rows [start, start + T) replaced by update [T, ..]; start i32[] is data and
// is clamped so that the update lies inside. In place where the operand is not read again.
extern const OpDef kDynamicUpdateSlice;
Value dynamic_update_slice(Value operand, Value update, Value start,
                           Where where = Where::current());
// Attention of T new tokens at positions start, start + 1, ... over a cache of C rows that holds
// them already; token t sees rows [0, start + t], of these the last `window` when that is > 0.
// Scores, sink and bias (P >= C) are those of attention(); options.seq_len and documents have no
// meaning here. Inference only. Result [T, N, V].
extern const OpDef kAttentionCached;
Value attention_cached(Value q_TNH, Value k_cache_CKH, Value v_cache_CKV, Value start,
                       const AttentionOptions& options, std::optional<Value> sink_N = {},
                       std::optional<Value> bias_NP = {}, Where where = Where::current());

// ---- loss
// loss[] f32 = scale[] * sum over labels != -100 of (logsumexp(logits) - logits[label]). Softmax
// and sum in f32. Operands (logits_TV, labels_T i32, scale); grad: + dloss -> dlogits.
extern const OpDef kCrossEntropy, kCrossEntropyGrad;
Value cross_entropy(Value logits_TV, Value labels_T, Value scale, Where where = Where::current());
// The same with logits z = h_TD w_VD^T + bias_V (none: 0), or cap tanh(z / cap) where attr cap > 0,
// formed chunk by chunk (attr num_chunks: functions in ops/loss/loss.h), never whole. The bias is
// f32 (f64 with h). Grad: (h, w, labels, scale[, bias], dloss) -> loss, dh (h's dtype), dw f32[V,D]
// [, dbias]: one pass computes all, so that in a training graph the forward op is replaced by
// result 0 of its grad.
extern const OpDef kLinearCrossEntropy, kLinearCrossEntropyGrad;
Value linear_cross_entropy(Value h_TD, Value w_VD, Value labels_T, Value scale, int64_t num_chunks,
                           std::optional<Value> bias_V = {}, double cap = 0,
                           Where where = Where::current());

// ---- optimizer
// norm = sqrt(sum over all gradients of squares), f32 scalar, accumulated in f64 over a fixed grid;
// NaN and Inf propagate. The last `num_squares` operands are no gradients but sums of squares of
// such, f64[].
extern const OpDef kGlobalNorm;  // variadic; attr num_squares
Value global_norm(std::span<const Value> grads, std::span<const Value> squares = {},
                  Where where = Where::current());
// One pass over p, g, m, v. g is multiplied by clip[] first. step[] i64 counts from 1. Arithmetic
// f32; bias corrections in f64. decoupled 1: AdamW (p -= lr*wd*p first), 0: Adam (g += wd*p). (p,
// g, m, v, clip, lr, step) -> p', m', v' of the operands' dtypes.
extern const OpDef kAdam;  // attrs beta1, beta2, eps, weight_decay, decoupled
// adam on an f32 matrix that also writes copies of p' for the next step's products: results p', m',
// v', then one per entry of attr copies (list of ir::Layout as integers), in attr copy_dtype. Same
// bits as adam, convert, pack.
extern const OpDef kAdamPack;
// (p, g, buf, clip, lr, step) -> p', buf'. torch.optim.SGD: buf = g at step 1. attrs momentum,
// dampening, nesterov, weight_decay
extern const OpDef kSgd;

}  // namespace rhea::ops

// In the namespace of Value, so that model code finds them.
namespace rhea::ir {
// As the functions of these names: of one shape and dtype.
inline Value operator+(Value a, Value b) { return ops::add(a, b); }
inline Value operator-(Value a, Value b) { return ops::subtract(a, b); }
inline Value operator*(Value a, Value b) { return ops::multiply(a, b); }
inline Value operator/(Value a, Value b) { return ops::divide(a, b); }
}  // namespace rhea::ir
