// The kernel of last resort: the row's own f64 evaluation.
#include <vector>

#include "rhea/exec/cpu/kernel_choice.h"
#include "rhea/ir/row_cells.h"

namespace rhea::exec::cpu {
namespace {

struct ReferenceState {
  const ir::OpDef* op;
  std::vector<ir::Type> in, out;
  ir::Attrs attrs;
};

void run_reference(const ir::KernelArgs& args) {
  const auto& state = *static_cast<const ReferenceState*>(args.state);
  std::vector<std::vector<double>> in(state.in.size()), out(state.out.size());
  for (size_t i = 0; i < in.size(); ++i) {
    in[i].resize(static_cast<size_t>(ir::num_elements(state.in[i].shape)));
    for (size_t k = 0; k < in[i].size(); ++k)
      in[i][k] = load_as_f64(args.in[i].data, state.in[i].dtype, static_cast<int64_t>(k));
  }
  for (size_t i = 0; i < out.size(); ++i)
    out[i].resize(static_cast<size_t>(ir::num_elements(state.out[i].shape)));
  ir::call_reference(*state.op, {in, out, state.in, state.out, state.attrs});
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t k = 0; k < out[i].size(); ++k)
      store_from_f64(args.out[i].data, state.out[i].dtype, static_cast<int64_t>(k), out[i][k]);
  }
}

}  // namespace

ir::KernelPlan plan_reference(const ir::OpInstance& op) {
  ir::KernelPlan plan;
  plan.state = std::make_shared<const ReferenceState>(ReferenceState{
      op.op, {op.in.begin(), op.in.end()}, {op.out.begin(), op.out.end()}, *op.attrs});
  plan.run = run_reference;
  plan.note = "evaluated in f64";
  return plan;
}

}  // namespace rhea::exec::cpu
