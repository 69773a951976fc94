// Small op rows for the executor's own tests: kernels that say exactly what each test needs.
#pragma once
#include <cmath>

#include "rhea/base/error.h"
#include "rhea/ir/graph.h"
#include "rhea/ir/op_def.h"

namespace rhea::exec::cpu::test {

using ir::Attrs;
using ir::OpDef;
using ir::OpInstance;
using ir::Type;
using ir::Value;

inline std::vector<Type> same_as_first(std::span<const Type> in, const Attrs&) { return {in[0]}; }

struct RowsState {
  int64_t rows, columns;
};

inline ir::KernelPlan plan_rows(const OpInstance& op, void (*run)(const ir::KernelArgs&),
                                int64_t arguments) {
  const int64_t rows = op.out[0].rank() < 2 ? 1 : op.out[0].shape[0];
  ir::KernelPlan plan;
  plan.grid = {rows};
  plan.state = std::make_shared<const RowsState>(
      RowsState{rows, rows == 0 ? 0 : ir::num_elements(op.out[0].shape) / rows});
  plan.run = run;
  for (int i = 0; i < arguments; ++i) plan.in_place.push_back({i, 0});
  plan.strided_in = ~uint64_t{0};
  plan.strided_out = 1;
  return plan;
}

// out = f(a, b) over f32, row by row.
template <class F>
void run_binary(const ir::KernelArgs& args) {
  const auto& state = *static_cast<const RowsState*>(args.state);
  for (int64_t row = args.begin; row < args.end; ++row) {
    const float* a = args.in[0].as<const float>() + row * args.in[0].row_stride;
    const float* b = args.in[1].as<const float>() + row * args.in[1].row_stride;
    float* out = args.out[0].as<float>() + row * args.out[0].row_stride;
    for (int64_t i = 0; i < state.columns; ++i) out[i] = F{}(a[i], b[i]);
  }
}

inline const OpDef kAdd{
    .name = "test_add",
    .infer = same_as_first,
    .cpu = {{.name = "rows",
             .plan =
                 [](const OpInstance& op) {
                   return plan_rows(op, run_binary<std::plus<float>>, 2);
                 }}},
};

// Neither in place nor strided.
inline const OpDef kMultiply{
    .name = "test_multiply",
    .infer = same_as_first,
    .cpu = {{.name = "whole",
             .plan =
                 [](const OpInstance& op) {
                   auto plan = plan_rows(op, run_binary<std::multiplies<float>>, 0);
                   plan.strided_in = plan.strided_out = 0;
                   return plan;
                 }}},
};

// No kernel: 2x + x.
inline const OpDef kTriple{
    .name = "test_triple",
    .infer = same_as_first,
    .decompose = [](ir::Graph& g, std::span<const Value> in, const Attrs&) -> std::vector<Value> {
      const Value twice = g.add1(kAdd, {in[0], in[0]});
      return {g.add1(kAdd, {twice, in[0]})};
    },
    .cpu = {{.name = "never",
             .accepts = [](const OpInstance&) { return "always refuses"; },
             .plan = nullptr}},
};

// Only a reference: 1/x.
inline const OpDef kInverse{
    .name = "test_inverse",
    .infer = same_as_first,
    .reference =
        [](const ir::ReferenceArgs& args) {
          for (size_t i = 0; i < args.out[0].size(); ++i) args.out[0][i] = 1 / args.in[0][i];
        },
};

}  // namespace rhea::exec::cpu::test
