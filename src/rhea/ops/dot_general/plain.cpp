// Products of any dtype, layout and contraction in plain C++: correct everywhere, fast nowhere.
#include <algorithm>

#include "rhea/base/dtype.h"
#include "rhea/base/error.h"
#include "rhea/ops/dot_general/product.h"

namespace rhea::ops {
namespace {

using ir::KernelArgs;
using ir::KernelPlan;
using ir::Layout;
using ir::OpInstance;

// One item is one row of the result; Acc is double for f64 and float for all else.
template <class In, class Out, class Acc>
void run(const KernelArgs& args) {
  const auto& p = *static_cast<const Product*>(args.state);
  const bool packed = p.b_layout != Layout::row_major;
  const bool matrix = p.rank == 2;
  const int64_t lda = matrix ? args.in[0].row_stride : p.a_row();
  const int64_t ldb = matrix ? args.in[1].row_stride : p.b_row();
  const int64_t ldc = matrix ? args.out[0].row_stride : p.n;
  const int64_t depth = panel_depth(p.k, p.in), pair = panel_pair(p.in);
  auto* sum = static_cast<Acc*>(args.scratch);
  for (int64_t item = args.begin; item < args.end; ++item) {
    const int64_t batch = item / p.m, i = item % p.m;
    const In* a = args.in[0].as<In>() + batch * p.m * p.k;
    const In* b = args.in[1].as<In>() + batch * p.k * p.n;
    Out* c = args.out[0].as<Out>() + batch * p.m * p.n + i * ldc;
    std::fill(sum, sum + p.n, Acc{0});
    for (int64_t k = 0; k < p.k; ++k) {
      const Acc x =
          static_cast<Acc>(static_cast<float>(a[p.a_transposed ? k * lda + i : i * lda + k]));
      if constexpr (std::is_same_v<Acc, double>) {
        const double wide = static_cast<double>(a[p.a_transposed ? k * lda + i : i * lda + k]);
        for (int64_t j = 0; j < p.n; ++j)
          sum[j] += wide * static_cast<double>(b[p.b_transposed ? j * ldb + k : k * ldb + j]);
      } else if (packed) {
        for (int64_t j = 0; j < p.n; ++j)
          sum[j] += x * static_cast<float>(b[panel_index(k, j, depth, pair)]);
      } else if (p.b_transposed) {
        for (int64_t j = 0; j < p.n; ++j) sum[j] += x * static_cast<float>(b[j * ldb + k]);
      } else {
        for (int64_t j = 0; j < p.n; ++j) sum[j] += x * static_cast<float>(b[k * ldb + j]);
      }
    }
    for (int64_t j = 0; j < p.n; ++j) {
      if constexpr (std::is_same_v<Out, double> || std::is_same_v<Acc, float>)
        c[j] = static_cast<Out>(sum[j]);
      else
        c[j] = static_cast<Out>(static_cast<float>(sum[j]));
    }
  }
}

template <class In>
void (*pick(DType out))(const KernelArgs&) {
  using Acc = std::conditional_t<std::is_same_v<In, double>, double, float>;
  switch (out) {
    case DType::f32:
      return run<In, float, Acc>;
    case DType::bf16:
      return run<In, bf16, Acc>;
    case DType::f16:
      return run<In, f16, Acc>;
    default:
      return run<In, double, Acc>;
  }
}

KernelPlan plan(const OpInstance& node) {
  const Product p = product_of(node);
  KernelPlan plan;
  plan.grid = {p.batch * p.m};
  plan.scratch_bytes = p.n * static_cast<int64_t>(sizeof(double));
  plan.state = std::make_shared<const Product>(p);
  switch (p.in) {
    case DType::f32:
      plan.run = pick<float>(p.out);
      break;
    case DType::bf16:
      plan.run = pick<bf16>(p.out);
      break;
    case DType::f16:
      plan.run = pick<f16>(p.out);
      break;
    default:
      plan.run = pick<double>(p.out);
      break;
  }
  if (p.rank == 2) {
    plan.strided_in = p.b_layout == Layout::row_major ? 3 : 1;
    plan.strided_out = 1;
  }
  plan.note = "row by row in plain loops";
  return plan;
}

}  // namespace

ir::CpuKernel plain_product() { return {"plain", Isa::plain, nullptr, plan}; }

}  // namespace rhea::ops
