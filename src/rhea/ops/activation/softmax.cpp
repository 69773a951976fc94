// Rows softmax and logsumexp over the last dim.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/reduce/reduce_kernel.h"
#include "rhea/ops/row.h"
#include "rhea/ops/row_kernels.h"

namespace rhea::ops {
namespace {

using ir::Attrs;
using ir::CpuKernel;
using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;
using ir::ReferenceArgs;
using ir::Sample;
using ir::Type;
using ir::VjpArgs;
using Cotangents = std::vector<Value>;

void expect_rows(std::span<const Type> in) {
  expect_operands(in, {"x"});
  expect_float(in[0], "x");
  if (in[0].rank() == 0) throw Error("operand 'x' must have a last dim, got {}", to_string(in[0]));
}

KernelPlan rows_plan(const OpInstance& op, void (*run)(const KernelArgs&)) {
  auto state = std::make_shared<RowsState>();
  state->n = op.in[0].shape.back();
  Shape rows = op.in[0].shape;
  rows.pop_back();
  state->rows = num_elements(rows);
  state->dtype = op.in[0].dtype;
  state->rows_per_item =
      std::max<int64_t>(1, RowsState::kBlockElements / std::max<int64_t>(1, state->n));
  KernelPlan plan;
  plan.grid = {div_up(state->rows, state->rows_per_item)};
  plan.state = std::move(state);
  plan.run = run;
  return plan;
}

ir::RowPlan on_row_tiles(const OpInstance& op, std::string_view roles,
                         void (*run)(const KernelArgs&)) {
  auto kernel = std::make_shared<RowKernel<RowsState>>();
  kernel->run = run;
  kernel->state.rows = std::numeric_limits<int64_t>::max();  // the grid of a tile is its rows
  kernel->state.n = op.in[0].shape.back();
  return {roles, kernel, run_on_row_tile<RowsState>};
}
ir::RowPlan softmax_tile(const OpInstance& op, Isa isa) {
  constexpr void (*kRuns[])(const KernelArgs&) = RHEA_PER_ISA(run_softmax);
  return on_row_tiles(op, "r->r", kRuns[vector_isa(isa)]);
}
ir::RowPlan logsumexp_tile(const OpInstance& op, Isa isa) {
  constexpr void (*kRuns[])(const KernelArgs&) = RHEA_PER_ISA(run_logsumexp);
  return on_row_tiles(op, "r->n", kRuns[vector_isa(isa)]);
}

// One row in f64.
void softmax_row(const double* x, double* y, int64_t n) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < n; ++i) max = x[i] > max || x[i] != x[i] ? x[i] : max;
  for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - max);
  for (int64_t i = 0; i < n; ++i) y[i] /= sum;
}
void logsumexp_row(const double* x, double* y, int64_t n) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < n; ++i) max = x[i] > max || x[i] != x[i] ? x[i] : max;
  if (std::isinf(max)) max = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - max);
  *y = max + std::log(sum);
}

// Any type, through f64; scratch holds a row of the operand and one of the result.
template <bool kSoftmaxRow>
void run_scalar(const KernelArgs& args) {
  const auto& s = *static_cast<const RowsState*>(args.state);
  double* x = static_cast<double*>(args.scratch);
  double* y = x + s.n;
  const int64_t results = kSoftmaxRow ? s.n : 1;
  const int64_t end = std::min(args.end * s.rows_per_item, s.rows);
  for (int64_t row = args.begin * s.rows_per_item; row < end; ++row) {
    for (int64_t i = 0; i < s.n; ++i) x[i] = load_as_f64(args.in[0].data, s.dtype, row * s.n + i);
    if (kSoftmaxRow) {
      softmax_row(x, y, s.n);
    } else {
      logsumexp_row(x, y, s.n);
    }
    for (int64_t i = 0; i < results; ++i)
      store_from_f64(args.out[0].data, s.dtype, row * results + i, y[i]);
  }
}

struct Runs {
  void (*plain)(const KernelArgs&);
#if defined(__x86_64__)
  void (*avx2)(const KernelArgs&);
  void (*avx512)(const KernelArgs&);
#endif
  void (*scalar)(const KernelArgs&);
};

std::vector<CpuKernel> rows_kernels(const Runs& runs, bool in_place) {
  std::vector<CpuKernel> kernels;
  const auto add = [&](std::string_view name, Isa isa, void (*run)(const KernelArgs&)) {
    kernels.push_back({name, isa,
                       [](const OpInstance& op) -> std::string {
                         return op.in[0].dtype == DType::f64 ? "type f64" : "";
                       },
                       [run, in_place](const OpInstance& op) {
                         KernelPlan plan = rows_plan(op, run);
                         if (in_place) plan.in_place = {{0, 0}};
                         return plan;
                       }});
  };
#if defined(__x86_64__)
  add("rows_avx512", Isa::avx512, runs.avx512);
  add("rows_avx2", Isa::avx2, runs.avx2);
#endif
  add("rows_plain", Isa::plain, runs.plain);
  kernels.push_back({"rows_scalar", Isa::plain, nullptr, [run = runs.scalar](const OpInstance& op) {
                       KernelPlan plan = rows_plan(op, run);
                       const int64_t n = op.in[0].shape.back();
                       plan.scratch_bytes = (2 * n + 1) * static_cast<int64_t>(sizeof(double));
                       return plan;
                     }});
  return kernels;
}

template <bool kSoftmaxRow>
void reference(const ReferenceArgs& args) {
  const int64_t n = args.in_types[0].shape.back();
  const int64_t step = kSoftmaxRow ? n : 1;
  const auto rows = static_cast<int64_t>(args.out[0].size()) / std::max<int64_t>(1, step);
  for (int64_t row = 0; row < rows; ++row) {
    const double* x = args.in[0].data() + row * n;
    if (kSoftmaxRow) {
      softmax_row(x, args.out[0].data() + row * n, n);
    } else {
      logsumexp_row(x, args.out[0].data() + row, n);
    }
  }
}

std::vector<Sample> rows_samples() {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Sample> samples;
  const auto add = [&](std::string name, DType dtype, Shape shape, double range) {
    samples.push_back(
        {.name = std::move(name), .inputs = {uniform(dtype, std::move(shape), -range, range)}});
  };
  add("odd", DType::f32, {5, 37}, 4);
  add("three_dims", DType::f32, {2, 3, 16}, 4);
  add("vector", DType::f32, {9}, 4);
  add("bf16", DType::bf16, {4, 33}, 4);
  add("f16", DType::f16, {3, 65}, 4);
  add("f64", DType::f64, {3, 7}, 4);
  add("one_column", DType::f32, {4, 1}, 4);
  add("no_rows", DType::f32, {0, 5}, 4);
  add("huge", DType::f32, {3, 20}, 1e4);
  samples.back().check_vjp = false;  // one hot to the last digit: differences vanish
  add("items", DType::f32, {70, 500}, 4);
  samples.back().check_vjp = false;
  samples.push_back(
      {.name = "special",
       .inputs = {values(DType::f32, {5, 3},
                         {-inf, -inf, -inf, -inf, 0, 1, inf, 0, 1, nan, 0, 1, inf, -inf, inf})},
       .check_vjp = false});
  return samples;
}

std::string last_dim_whole(const OpInstance& op, bool keeps_last) {
  const std::string rows = shard_letters(op.in[0].rank() - 1);
  const char last = static_cast<char>('a' + op.in[0].rank() - 1);
  const std::string whole = rows + '!' + last;
  return whole + "->" + (keeps_last ? whole : rows);
}

#if defined(__x86_64__)
#define RHEA_ROWS_RUNS(name) isa_plain::name, isa_avx2::name, isa_avx512::name
#else
#define RHEA_ROWS_RUNS(name) isa_plain::name
#endif

}  // namespace

const OpDef kSoftmax{
    .name = "softmax",
    .infer =
        [](std::span<const Type> in, const Attrs&) {
          expect_rows(in);
          return std::vector<Type>{in[0]};
        },
    .decompose =
        [](ir::Graph&, std::span<const Value> in, const Attrs&) {
          const Value x = widen(in[0]);
          const int64_t n = x.dim(-1), last = x.type().rank() - 1;
          const Value e = exponential(x - broadcast_last(reduce_max(x, {last}), n));
          const Value y = e / broadcast_last(reduce_sum(e, {last}), n);
          return std::vector<Value>{convert(y, in[0].dtype())};
        },
    // dx = y (dy - sum(y dy))
    .vjp =
        [](const VjpArgs& args) {
          const Value y = widen(args.outputs[0]), dy = widen(args.cotangents[0]);
          const Value sum = reduce_sum(y * dy, {y.type().rank() - 1});
          const Value dx = y * (dy - broadcast_last(sum, y.dim(-1)));
          return Cotangents{convert(dx, args.inputs[0].dtype())};
        },
    .shard = [](const OpInstance& op) { return last_dim_whole(op, true); },
    .cpu = rows_kernels({RHEA_ROWS_RUNS(run_softmax), run_scalar<true>}, true),
    .cost = cost_per_element(28),
    .samples = rows_samples,
    .reference = reference<true>,
    .rows = softmax_tile,
};

const OpDef kLogSumExp{
    .name = "logsumexp",
    .infer =
        [](std::span<const Type> in, const Attrs&) {
          expect_rows(in);
          Type out = in[0];
          out.shape.pop_back();
          return std::vector<Type>{out};
        },
    // dx = dy softmax(x); from x, because y rounded to bf16 is too coarse for exp(x - y)
    .vjp =
        [](const VjpArgs& args) {
          const Value x = widen(args.inputs[0]);
          const Value dx = broadcast_last(widen(args.cotangents[0]), x.dim(-1)) * softmax(x);
          return Cotangents{convert(dx, args.inputs[0].dtype())};
        },
    .shard = [](const OpInstance& op) { return last_dim_whole(op, false); },
    .cpu = rows_kernels({RHEA_ROWS_RUNS(run_logsumexp), run_scalar<false>}, false),
    .cost =
        [](const OpInstance& op) {
          return ir::Cost{15 * static_cast<double>(num_elements(op.in[0].shape)),
                          operand_and_result_bytes(op)};
        },
    .samples = rows_samples,
    .reference = reference<false>,
    .rows = logsumexp_tile,
};

Value softmax(Value x, Where where) { return x.graph->add1(kSoftmax, {x}, {}, where); }
Value logsumexp(Value x, Where where) { return x.graph->add1(kLogSumExp, {x}, {}, where); }

}  // namespace rhea::ops
