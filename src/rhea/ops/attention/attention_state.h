// What every attention kernel keeps for a node, and the gradient of the sink logits, which all
// kernels form in the same way: one number per (row, query head) in the workspace, added over the
// rows in phase 1.
#pragma once
#include <memory>

#include "rhea/ops/attention/attention_shape.h"
#include "rhea/ops/element.h"

namespace rhea::ops {

struct AttentionState {
  AttentionShape shape;
  AttentionOperands at;
  DType sink_dtype = DType::f32;

  AttentionState(const ir::OpInstance& op, bool grad)
      : shape(AttentionShape::of(op)), at(*op.attrs, grad) {
    if (shape.has_sink) sink_dtype = op.in[static_cast<size_t>(at.sink)].dtype;
  }
  template <class A>
  A sink(const ir::KernelArgs& args, int64_t head) const {
    return static_cast<A>(load_as_f64(args.in[at.sink].data, sink_dtype, head));
  }
  // Null: none.
  const float* bias(const ir::KernelArgs& args, int64_t head) const {
    return at.bias < 0 ? nullptr : args.in[at.bias].as<const float>() + head * shape.bias_row;
  }
};

// Phase 1 of a gradient kernel: dsink of heads [begin, end).
template <class A>
void sum_sink_rows(const ir::KernelArgs& args, const AttentionShape& shape) {
  const A* parts = static_cast<const A*>(args.workspace);
  for (int64_t head = args.begin; head < args.end; ++head) {
    A sum = 0;
    for (int64_t row = 0; row < shape.rows; ++row) sum += parts[row * shape.query_heads + head];
    args.out[3].as<A>()[head] = sum;
  }
}

// Adds phase 1 and its workspace to the plan of a gradient kernel, if the node has sinks.
inline void plan_sink_sums(const AttentionShape& shape, ir::KernelPlan& plan) {
  if (!shape.has_sink) return;
  plan.grid.push_back(shape.query_heads);
  plan.workspace_bytes = shape.rows * shape.query_heads * dtype_size(accum_dtype(shape.dtype));
}

}  // namespace rhea::ops
