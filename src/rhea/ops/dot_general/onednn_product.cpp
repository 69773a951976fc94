// Products by oneDNN, single-threaded over a fixed grid of row blocks of the result: faster than
// its own threading, and the bits do not depend on the number of threads.
#include <fmt/core.h>

#include <algorithm>

#include "rhea/base/cpu_tiles.h"
#include "rhea/base/error.h"
#include "rhea/ops/dot_general/onednn.h"
#include "rhea/ops/dot_general/product.h"

namespace rhea::ops {
namespace {

using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;

struct State {
  Product p;
  int64_t rows = 0;    // of the result per item
  int64_t blocks = 0;  // per matrix of the batch
  std::unique_ptr<OnednnMatmul> whole, tail;
};

// Blocks of 256 rows are as fast as larger ones; a weight gradient repacks its right operand in
// each call, so it takes strips that leave a handful of items for the threads.
int64_t block_rows(const Product& p) {
  if (!p.a_transposed) return 256;
  return std::clamp<int64_t>(round_up(div_up(p.m, 6), 64), 64, 384);
}

std::string accepts(const OpInstance& node) {
  const Product p = product_of(node);
  if (p.in != DType::f32 && p.in != DType::bf16)
    return fmt::format("{} operands", dtype_name(p.in));
  if (p.out != DType::f32 && p.out != p.in) return fmt::format("result in {}", dtype_name(p.out));
  if (p.b_layout != ir::Layout::row_major) return "packed right operand";
  if (p.in == DType::bf16 && allowed_isa() < Isa::avx512_bf16) return "no bf16 instructions";
  if (p.m == 0 || p.n == 0 || p.k == 0) return "a dim is 0";
  return "";
}

void run(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  const Product& p = s.p;
  const int64_t in_bytes = dtype_size(p.in), out_bytes = dtype_size(p.out);
  for (int64_t item = args.begin; item < args.end; ++item) {
    const int64_t batch = item / s.blocks, first = item % s.blocks * s.rows;
    const auto* a = args.in[0].as<char>() +
                    (batch * p.m * p.k + (p.a_transposed ? first : first * p.k)) * in_bytes;
    const auto* b = args.in[1].as<char>() + batch * p.k * p.n * in_bytes;
    auto* c = args.out[0].as<char>() + (batch * p.m + first) * p.n * out_bytes;
    const bool is_tail = s.tail != nullptr && first + s.rows > p.m;
    (is_tail ? s.tail : s.whole)->run(a, b, c, args.scratch);
  }
}

KernelPlan plan(const OpInstance& node) {
  auto state = std::make_shared<State>();
  const Product p = state->p = product_of(node);
  state->rows = std::min(block_rows(p), p.m);
  state->blocks = div_up(p.m, state->rows);
  MatmulShape shape{.m = state->rows, .n = p.n, .k = p.k, .c_row = p.n, .in = p.in, .out = p.out};
  shape.a_row = p.a_transposed ? 1 : p.k;
  shape.a_column = p.a_transposed ? p.m : 1;
  shape.b_row = p.b_transposed ? 1 : p.n;
  shape.b_column = p.b_transposed ? p.k : 1;
  state->whole = std::make_unique<OnednnMatmul>(shape);
  KernelPlan plan;
  plan.scratch_bytes = state->whole->scratch_bytes();
  if (p.m % state->rows != 0) {
    shape.m = p.m % state->rows;
    state->tail = std::make_unique<OnednnMatmul>(shape);
    plan.scratch_bytes = std::max(plan.scratch_bytes, state->tail->scratch_bytes());
  }
  plan.grid = {p.batch * state->blocks};
  plan.note = fmt::format("{} blocks of {} rows, {}", p.batch * state->blocks, state->rows,
                          state->whole->implementation());
  plan.state = std::move(state);
  plan.run = run;
  return plan;
}

}  // namespace

ir::CpuKernel onednn_product() { return {"onednn", Isa::plain, accepts, plan}; }

ir::CpuKernel onednn_on_tiles() {
  return {"onednn_amx", Isa::avx512_bf16,
          [](const OpInstance& node) -> std::string {
            if (product_of(node).in != DType::bf16) return "no bf16 operands";
            if (!active_tiles())
              return fmt::format("needs {}, have {}", kTilesWord, isa_name(active_isa()));
            return accepts(node);
          },
          plan};
}

}  // namespace rhea::ops
