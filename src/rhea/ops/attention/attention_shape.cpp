// Sizes of an attention node.
#include "rhea/ops/attention/attention_shape.h"

#include <algorithm>

#include "rhea/base/error.h"

namespace rhea::ops {

AttentionShape AttentionShape::of(const ir::OpInstance& op) {
  const ir::Attrs& attrs = *op.attrs;
  const ir::Shape &q = op.in[0].shape, &k = op.in[1].shape, &v = op.in[2].shape;
  AttentionShape s;
  s.tokens = q[0];
  s.row = attrs.i64("seq_len");
  s.rows = s.row > 0 ? s.tokens / s.row : 0;
  s.query_heads = q[1];
  s.kv_heads = k[1];
  s.group = s.kv_heads > 0 ? s.query_heads / s.kv_heads : 0;
  s.width = q[2];
  s.value_width = v[2];
  s.window = attrs.i64("window");
  s.scale = attrs.f64("scale");
  s.softcap = attrs.f64("softcap");
  s.documents = attrs.flag("documents");
  s.has_sink = attrs.flag("has_sink");
  s.has_bias = attrs.flag("has_bias");
  if (s.has_bias)
    s.bias_row = op.in[static_cast<size_t>(AttentionOperands(attrs, false).bias)].shape[1];
  s.dtype = op.in[0].dtype;
  return s;
}

double AttentionShape::visible_pairs() const {
  const double length = static_cast<double>(row);
  const double w = window > 0 ? static_cast<double>(std::min(window, row)) : length;
  // The first w queries see 1, 2, .. w keys, the others w.
  return static_cast<double>(rows) * (w * (w + 1) / 2 + (length - w) * w);
}

AttentionOperands::AttentionOperands(const ir::Attrs& attrs, bool grad) {
  if (attrs.flag("has_sink")) sink = count++;
  if (attrs.flag("has_bias")) bias = count++;
  if (!grad) return;
  o = count++;
  lse = count++;
  d_o = count++;
  if (attrs.flag("has_lse_grad")) d_lse = count++;
}

void check_sink(const ir::Type& sink, const ir::Type& q_TNH) {
  const int64_t heads = q_TNH.shape[1];
  if (sink.shape != ir::Shape{heads} || (sink.dtype != q_TNH.dtype && sink.dtype != DType::f32))
    throw Error("sink must be {0}[{1}] or f32[{1}], got {2}", dtype_name(q_TNH.dtype), heads,
                to_string(sink));
}

void check_bias(const ir::Type& bias, const ir::Type& q_TNH, int64_t num_positions) {
  const int64_t heads = q_TNH.shape[1];
  if (bias.dtype != DType::f32 || bias.rank() != 2 || bias.shape[0] != heads ||
      bias.shape[1] < num_positions)
    throw Error("bias must be f32[{}, at least {} positions], got {}", heads, num_positions,
                to_string(bias));
}

void first_visible_keys(const AttentionShape& shape, const int32_t* positions, int32_t* first) {
  int64_t start = 0;
  for (int64_t t = 0; t < shape.row; ++t) {
    if (shape.documents && positions[t] == 0) start = t;
    const int64_t window_start = shape.window > 0 ? t - shape.window + 1 : 0;
    first[t] = static_cast<int32_t>(std::max(start, window_start));
  }
}

}  // namespace rhea::ops
