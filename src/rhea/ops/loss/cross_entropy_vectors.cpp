// Kernels of cross_entropy and its gradient by vectors: a row of logits is an item.
#include <algorithm>

#include "rhea/ops/loss/cross_entropy_rows.h"
#include "rhea/ops/loss/loss.h"
#include "rhea/ops/row_kernels.h"

namespace rhea::ops {
namespace {

using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;

#if defined(__x86_64__)
struct State {
  DType dtype = DType::f32;
  int64_t tokens = 0, vocabulary = 0;
  double (*row)(const CrossEntropyRow&) = nullptr;
};

const State& state_of(const KernelArgs& args) { return *static_cast<const State*>(args.state); }

// Token t without its gradient.
CrossEntropyRow row_of(const KernelArgs& args, int64_t t) {
  const State& s = state_of(args);
  const int64_t label = args.in[1].as<int32_t>()[t];
  return {row_dtype(s.dtype),
          s.vocabulary,
          args.in[0].as<char>() + t * args.in[0].row_stride * dtype_size(s.dtype),
          label < s.vocabulary ? label : -1,
          nullptr,
          0};
}

bool ignored(const KernelArgs& args, int64_t t) {
  return args.in[1].as<int32_t>()[t] == kIgnoredLabel;
}

// Phase 0: the loss of each token; phase 1 adds them in order.
void run_forward(const KernelArgs& args) {
  const State& s = state_of(args);
  auto* losses = static_cast<double*>(args.workspace);
  if (args.phase == 0) {
    for (int64_t t = args.begin; t < args.end; ++t)
      losses[t] = ignored(args, t) ? 0 : s.row(row_of(args, t));
    return;
  }
  double sum = 0;
  for (int64_t t = 0; t < s.tokens; ++t) sum += losses[t];
  *args.out[0].as<float>() = static_cast<float>(static_cast<double>(*args.in[2].as<float>()) * sum);
}

void run_grad(const KernelArgs& args) {
  const State& s = state_of(args);
  const int64_t element = dtype_size(s.dtype);
  for (int64_t t = args.begin; t < args.end; ++t) {
    char* grad = args.out[0].as<char>() + t * args.out[0].row_stride * element;
    if (ignored(args, t)) {
      std::fill_n(grad, s.vocabulary * element, char{0});
      continue;
    }
    CrossEntropyRow row = row_of(args, t);
    row.grad = grad;
    row.grad_scale = *args.in[2].as<float>() * *args.in[3].as<float>();
    s.row(row);
  }
}

KernelPlan plan_for(const OpInstance& node, Isa isa) {
  auto state = std::make_shared<State>();
  state->dtype = node.in[0].dtype;
  state->tokens = node.in[0].shape[0];
  state->vocabulary = node.in[0].shape[1];
  state->row = isa == Isa::avx512 ? isa_avx512::cross_entropy_row : isa_avx2::cross_entropy_row;
  KernelPlan plan;
  plan.grid = {state->tokens};
  plan.strided_in = 1;
  if (node.in.size() == 3) {
    plan.grid.push_back(1);
    plan.workspace_bytes = state->tokens * 8;
    plan.run = run_forward;
  } else {
    plan.strided_out = 1;
    plan.in_place = {{0, 0}};
    plan.run = run_grad;
  }
  plan.state = std::move(state);
  return plan;
}
#endif

// Not by vectors in plain C++: it emulates the fused products of exp, the scalar loop is 8 times
// faster there.
std::vector<ir::CpuKernel> with_vectors([[maybe_unused]] std::string_view name,
                                        ir::CpuKernel plain) {
  std::vector<ir::CpuKernel> kernels;
#if defined(__x86_64__)
  kernels = kernels_per_isa(name, plan_for, {Isa::avx512, Isa::avx2});
  for (ir::CpuKernel& kernel : kernels)
    kernel.accepts = [](const OpInstance& op) {
      return op.in[0].dtype == DType::f64 ? std::string("f64 has no vector kernel") : "";
    };
#endif
  kernels.push_back(std::move(plain));
  return kernels;
}

}  // namespace

std::vector<ir::CpuKernel> cross_entropy_kernels() {
  return with_vectors("cross_entropy.vectors", plain_cross_entropy());
}
std::vector<ir::CpuKernel> cross_entropy_grad_kernels() {
  return with_vectors("cross_entropy_grad.vectors", plain_cross_entropy_grad());
}

}  // namespace rhea::ops
