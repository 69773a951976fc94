// T tokens, D model dim, N query heads, K kv heads, G query heads per kv head, H head dim
#include "rhea/nn/qkv.h"

#include <array>

#include "rhea/nn/joined_linear.h"
#include "rhea/ops/ops.h"

namespace rhea::nn {

Value QKV::Config::heads(Value y, int64_t begin, int64_t count) const {
  const Value part = begin == 0 && y.dim(1) == count * head_dim
                         ? y
                         : ops::slice_dim(y, 1, begin, begin + count * head_dim);
  return ops::reshape(part, {y.dim(0), count, head_dim});
}

void QKV::Config::fields(Visitor& v) {
  v.names(names);
  v("n_heads", n_heads, "query heads", at_least(1));
  v("n_kv_heads", n_kv_heads, "key and value heads", at_least(1));
  v("head_dim", head_dim, "elements of a head", at_least(1));
}

QKV::Config::Result SplitQKV::Config::forward(Trace& trace, Value x_TD) const {
  // What wraps a projection is added to its columns of the one product.
  const std::array linears = {NamedLinear{names->wq, &wq->base_layer()},
                              NamedLinear{names->wk, &wk->base_layer()},
                              NamedLinear{names->wv, &wv->base_layer()}};
  if (fused && can_join(linears)) {
    const Value y = joined_linear(trace, names->wqkv, linears, x_TD);
    const auto part = [&](std::string_view name, const Linear::Config& linear, int64_t begin,
                          int64_t count) {
      if (&linear.base_layer() == &linear) return heads(y, begin, count);
      const ir::Scope scope(trace.graph(), name);
      const Value rows = ops::slice_dim(y, 1, begin, begin + count * head_dim);
      return heads(linear.adapted(trace, x_TD, rows), 0, count);
    };
    return {part(names->wq, *wq, 0, n_heads), part(names->wk, *wk, q_rows(), n_kv_heads),
            part(names->wv, *wv, q_rows() + kv_rows(), n_kv_heads)};
  }
  return {heads(call(trace, names->wq, *wq, x_TD), 0, n_heads),
          heads(call(trace, names->wk, *wk, x_TD), 0, n_kv_heads),
          heads(call(trace, names->wv, *wv, x_TD), 0, n_kv_heads)};
}

void SplitQKV::Config::fields(Visitor& v) {
  QKV::Config::fields(v);
  v("fused", fused, "one product for all three projections");
  v(names->wq, wq, "query projection");
  v(names->wk, wk, "key projection");
  v(names->wv, wv, "value projection");
}

QKV::Config::Result JoinedQKV::Config::forward(Trace& trace, Value x_TD) const {
  const Value y = call(trace, names->wqkv, *wqkv, x_TD);
  if (!by_kv_head)
    return {heads(y, 0, n_heads), heads(y, q_rows(), n_kv_heads),
            heads(y, q_rows() + kv_rows(), n_kv_heads)};
  const int64_t t = y.dim(0), g = n_heads / n_kv_heads;
  const Value y_TKGH = ops::reshape(y, {t, n_kv_heads, g + 2, head_dim});
  const auto part = [&](int64_t begin, int64_t count) {
    return ops::reshape(ops::slice_dim(y_TKGH, 2, begin, begin + count),
                        {t, n_kv_heads * count, head_dim});
  };
  return {part(0, g), part(g, 1), part(g + 1, 1)};
}

void JoinedQKV::Config::fields(Visitor& v) {
  QKV::Config::fields(v);
  v("by_kv_head", by_kv_head, "rows lie kv head by kv head");
  v(names->wqkv, wqkv, "query, key and value projections");
}

}  // namespace rhea::nn
