// N heads, P positions
#include "rhea/nn/alibi.h"

#include <bit>

#include "rhea/ops/ops.h"

namespace rhea::nn {

Value Alibi::Config::forward(Trace& trace) const {
  ir::Graph& graph = trace.graph();
  const ir::Type heads{DType::f32, {n_heads}};
  const auto first = static_cast<double>(std::bit_floor(static_cast<uint64_t>(n_heads)));
  const double step = bias_max / first;
  const Value n_N = ops::iota(graph, {n_heads}, DType::f32, 0);
  const Value is_first_N = ops::compare(n_N, graph.constant(first, heads), "LT");
  const Value exponent_N = ops::select(is_first_N, ops::multiply(ops::add(n_N, 1), -step),
                                       ops::multiply(ops::add(n_N, 0.5 - first), -step));
  Value slope_N = ops::power(graph.constant(2, heads), exponent_N);
  const int64_t num_positions = trace.options().seq_len;
  Value p_P = ops::iota(graph, {num_positions}, DType::f32, 0);
  if (in_bfloat16) {
    slope_N = ops::convert(slope_N, DType::bf16);
    p_P = ops::convert(p_P, DType::bf16);
  }
  const Shape table{n_heads, num_positions};
  const Value bias_NP =
      ops::broadcast_in_dim(slope_N, table, {0}) * ops::broadcast_in_dim(p_P, table, {1});
  const Value wide_NP = ops::convert(bias_NP, DType::f32);
  return factor == 1 ? wide_NP : ops::multiply(wide_NP, factor);
}

void PositionBias::Config::fields(Visitor& v) {
  v("max_positions", max_positions, "longest sequence the model is made for, 0 = any");
}

void Alibi::Config::fields(Visitor& v) {
  PositionBias::Config::fields(v);
  v("n_heads", n_heads, "query heads", at_least(1));
  v("bias_max", bias_max, "exponent of the last slope of 2^m heads");
  v("factor", factor, "of slope * position");
  v("in_bfloat16", in_bfloat16, "slope * position is rounded to bfloat16");
}

}  // namespace rhea::nn
