// Rows reduce_sum and reduce_max.
#include <algorithm>
#include <limits>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/reduce/reduce_kernel.h"
#include "rhea/ops/row.h"
#include "rhea/ops/row_kernels.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
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
using Dims = std::vector<int64_t>;

bool is_reduced(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

Dims kept_dims(const Dims& dims, int64_t rank) {
  Dims kept;
  for (int64_t d = 0; d < rank; ++d) {
    if (!is_reduced(dims, d)) kept.push_back(d);
  }
  return kept;
}

std::vector<Type> reduce_infer(std::span<const Type> in, const Attrs& attrs) {
  expect_operands(in, {"x"});
  const Dims& dims = attrs.list("dims");
  expect_ascending_dims(dims, in[0].rank(), "dims");
  if (in[0].dtype == DType::boolean) throw Error("operand 'x' must be a number type, got bool");
  Shape shape;
  for (const int64_t d : kept_dims(dims, in[0].rank()))
    shape.push_back(in[0].shape[static_cast<size_t>(d)]);
  return {{in[0].dtype, std::move(shape)}};
}

// ---- kernels

// [outer, reduced, inner] where the reduced dims are neighbours, dims of size 1 ignored; false
// where they are not.
bool as_three_dims(const OpInstance& op, ReduceState& s) {
  const Dims& dims = op.attrs->list("dims");
  int part = 0;  // 0 outer, 1 reduced, 2 inner
  for (int64_t d = 0; d < op.in[0].rank(); ++d) {
    const int64_t size = op.in[0].shape[static_cast<size_t>(d)];
    if (size == 1) continue;
    if (is_reduced(dims, d)) {
      if (part == 2) return false;
      part = 1;
      s.reduced *= size;
    } else {
      if (part == 1) part = 2;
      (part == 0 ? s.outer : s.inner) *= size;
    }
  }
  return true;
}

std::string accepts_tiles(const OpInstance& op) {
  const DType dtype = op.in[0].dtype;
  if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f16)
    return "type " + std::string(dtype_name(dtype));
  ReduceState s;
  return as_three_dims(op, s) ? "" : "reduced dims are not neighbours";
}

KernelPlan tiles_plan(const OpInstance& op, bool max, void (*run)(const KernelArgs&)) {
  auto state = std::make_shared<ReduceState>();
  ReduceState& s = *state;
  as_three_dims(op, s);
  s.max = max;
  s.in = op.in[0].dtype;
  s.out = op.out[0].dtype;
  const int64_t outputs = s.outer * s.inner;
  // A run of neighbours or a block of columns of about 64 KB to 1 MB.
  s.chunk = s.inner == 1 ? ReduceState::kRun : 1024;
  s.num_chunks = std::max<int64_t>(1, div_up(s.reduced, s.chunk));
  s.num_column_blocks = div_up(s.inner, ReduceState::kColumns);
  KernelPlan plan;
  plan.run = run;
  plan.grid = {outputs == 0 ? 0 : s.outer * s.num_chunks * s.num_column_blocks};
  if (s.num_chunks > 1) {
    plan.grid.push_back(div_up(outputs, ReduceState::kColumns));
    plan.workspace_bytes = s.num_chunks * outputs * int64_t{4};
  }
  plan.state = std::move(state);
  return plan;
}

// Rows of the last dim that are one run.
ir::RowPlan on_row_tiles(const OpInstance& op, Isa isa, bool max) {
  constexpr void (*kRuns[])(const KernelArgs&) = RHEA_PER_ISA(run_reduce);
  const int64_t last = op.in[0].rank() - 1, width = last < 0 ? 0 : op.in[0].shape.back();
  if (op.attrs->list("dims") != Dims{last} || width > ReduceState::kRun) return {};
  auto kernel = std::make_shared<RowKernel<ReduceState>>();
  kernel->run = kRuns[vector_isa(isa)];
  kernel->state.reduced = kernel->state.chunk = width;
  kernel->state.num_chunks = kernel->state.num_column_blocks = 1;
  kernel->state.max = max;
  return {"r->n", kernel, run_on_row_tile<ReduceState>};
}

// Any type and any dims: one output element at a time, groups of 32 as in the vector kernels.
struct ScalarState {
  Shape kept, kept_strides, reduced, reduced_strides;
  DType dtype = DType::f32;
  bool max = false;
};

template <class T, class Acc>
void reduce_one(const ScalarState& s, const void* data, void* out, int64_t output) {
  int64_t at = 0, rest = output;
  for (size_t d = s.kept.size(); d-- > 0;) {
    at += rest % s.kept[d] * s.kept_strides[d];
    rest /= s.kept[d];
  }
  const int64_t count = num_elements(s.reduced);
  Acc total{}, group{};
  if constexpr (std::is_floating_point_v<Acc>) {
    if (s.max) total = group = -std::numeric_limits<Acc>::infinity();
  } else if (s.max) {
    total = group = static_cast<Acc>(std::numeric_limits<T>::lowest());
  }
  const Acc identity = total;
  const auto join = [&](Acc a, Acc b) {
    if (s.max) return a > b || a != a ? a : b;
    if constexpr (std::is_floating_point_v<Acc>) {
      return a + b;
    } else {
      return static_cast<Acc>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    }
  };
  for (int64_t i = 0; i < count; ++i) {
    int64_t from = at, part = i;
    for (size_t d = s.reduced.size(); d-- > 0;) {
      from += part % s.reduced[d] * s.reduced_strides[d];
      part /= s.reduced[d];
    }
    group = join(group, static_cast<Acc>(static_cast<const T*>(data)[from]));
    if (i % 32 == 31 || i == count - 1) {
      total = join(total, group);
      group = identity;
    }
  }
  static_cast<T*>(out)[output] = static_cast<T>(total);
}

void run_scalar(const KernelArgs& args) {
  const auto& s = *static_cast<const ScalarState*>(args.state);
  dispatch_dtype(s.dtype, [&]<class T>() {
    using Acc = std::conditional_t<std::is_same_v<T, double>, double,
                                   std::conditional_t<std::is_integral_v<T>, int64_t, float>>;
    for (int64_t i = args.begin; i < args.end; ++i)
      reduce_one<T, Acc>(s, args.in[0].data, args.out[0].data, i);
  });
}

std::shared_ptr<ScalarState> scalar_state(const Type& in, const Dims& dims, bool max) {
  auto state = std::make_shared<ScalarState>();
  state->dtype = in.dtype;
  state->max = max;
  int64_t stride = 1;
  for (int64_t d = in.rank() - 1; d >= 0; --d) {
    const int64_t size = in.shape[static_cast<size_t>(d)];
    const bool reduced = is_reduced(dims, d);
    Shape& shape = reduced ? state->reduced : state->kept;
    Shape& strides = reduced ? state->reduced_strides : state->kept_strides;
    shape.insert(shape.begin(), size);
    strides.insert(strides.begin(), stride);
    stride *= size;
  }
  return state;
}

std::vector<CpuKernel> reduce_kernels(bool max) {
  std::vector<CpuKernel> kernels;
  const auto add = [&](std::string_view name, Isa isa, void (*run)(const KernelArgs&)) {
    kernels.push_back({name, isa, accepts_tiles,
                       [max, run](const OpInstance& op) { return tiles_plan(op, max, run); }});
  };
#if defined(__x86_64__)
  add("tree_avx512", Isa::avx512, isa_avx512::run_reduce);
  add("tree_avx2", Isa::avx2, isa_avx2::run_reduce);
#endif
  add("tree_plain", Isa::plain, isa_plain::run_reduce);
  kernels.push_back({"scalar", Isa::plain, nullptr, [max](const OpInstance& op) {
                       KernelPlan plan;
                       plan.grid = {num_elements(op.out[0].shape)};
                       plan.state = scalar_state(op.in[0], op.attrs->list("dims"), max);
                       plan.run = run_scalar;
                       return plan;
                     }});
  return kernels;
}

void reference(const ReferenceArgs& args, bool max) {
  Type in = args.in_types[0];
  in.dtype = DType::f64;
  const auto state = scalar_state(in, args.attrs.list("dims"), max);
  for (size_t i = 0; i < args.out[0].size(); ++i) {
    reduce_one<double, double>(*state, args.in[0].data(), args.out[0].data(),
                               static_cast<int64_t>(i));
  }
}

// ---- gradients

Value spread(Value y, Value like, const Dims& dims) {
  return broadcast_in_dim(y, like.shape(), kept_dims(dims, like.type().rank()));
}

Cotangents sum_vjp(const VjpArgs& args) {
  return {spread(args.cotangents[0], args.inputs[0], args.attrs.list("dims"))};
}

// Equal maxima share the gradient, as torch.amax.
Cotangents max_vjp(const VjpArgs& args) {
  const Dims& dims = args.attrs.list("dims");
  const Value x = args.inputs[0];
  const Value hits = compare(x, spread(args.outputs[0], x, dims), "EQ");
  const Value ones = convert(hits, DType::f32);
  const Value share = convert(args.cotangents[0], DType::f32) / reduce_sum(ones, dims);
  return {convert(spread(share, x, dims) * ones, x.dtype())};
}

std::string reduce_shard(const OpInstance& op) {
  const std::string operand = shard_letters(op.in[0].rank());
  std::string result;
  for (const int64_t d : kept_dims(op.attrs->list("dims"), op.in[0].rank()))
    result += operand[static_cast<size_t>(d)];
  return operand + "->" + result;
}

// A maximum of parts is not a sum of parts: its dims may not be split.
std::string max_shard(const OpInstance& op) {
  std::string operand, result;
  for (int64_t d = 0; d < op.in[0].rank(); ++d) {
    const char letter = static_cast<char>('a' + d);
    if (is_reduced(op.attrs->list("dims"), d)) {
      operand += '!';
    } else {
      result += letter;
    }
    operand += letter;
  }
  return operand + "->" + result;
}

ir::Cost reduce_cost(const OpInstance& op) {
  return {static_cast<double>(num_elements(op.in[0].shape)), operand_and_result_bytes(op)};
}

std::vector<Sample> reduce_samples() {
  std::vector<Sample> samples;
  const auto add = [&](std::string name, DType dtype, Shape shape, Dims dims) -> Sample& {
    const double low = dtype == DType::u8 ? 0 : -2;
    samples.push_back({.name = std::move(name),
                       .inputs = {uniform(dtype, std::move(shape), low, 2)},
                       .attrs = {{"dims", std::move(dims)}}});
    return samples.back();
  };
  add("last", DType::f32, {5, 77}, {1});
  add("first", DType::f32, {37, 19}, {0});
  add("middle", DType::bf16, {3, 7, 5}, {1});
  add("last_bf16", DType::bf16, {4, 67}, {1});
  add("f16", DType::f16, {3, 33}, {1});
  add("all", DType::f32, {6, 7}, {0, 1});
  add("outer_and_inner", DType::f32, {3, 4, 5}, {0, 2});
  add("outer_and_inner_bf16", DType::bf16, {3, 4, 5}, {0, 2});
  add("f64", DType::f64, {4, 9}, {1});
  add("integers", DType::i32, {3, 8}, {0});
  add("long_integers", DType::i64, {3, 8}, {1});
  add("bytes", DType::u8, {3, 8}, {1});
  add("nothing_reduced", DType::f32, {3, 5}, {});
  add("scalar", DType::f32, {}, {});
  add("empty_result", DType::f32, {0, 3}, {1});
  add("empty_reduced", DType::f32, {3, 0}, {1}).check_vjp = false;
  add("chunks_of_a_run", DType::f32, {2, 40000}, {1}).check_vjp = false;
  add("chunks_of_columns", DType::f32, {2500, 19}, {0}).check_vjp = false;
  add("blocks_of_columns", DType::bf16, {40, 300}, {0}).check_vjp = false;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  samples.push_back(
      {.name = "special",
       .inputs = {values(DType::f32, {4, 3}, {nan, 1, 2, inf, 1, 0, -inf, 3, 1, inf, -inf, 0})},
       .attrs = {{"dims", Dims{1}}},
       .check_vjp = false});
  samples.push_back({.name = "nan_in_columns",
                     .inputs = {values(DType::f32, {2, 3}, {1, nan, inf, nan, 1, -inf})},
                     .attrs = {{"dims", Dims{0}}},
                     .check_vjp = false});
  return samples;
}

}  // namespace

const OpDef kReduceSum{
    .name = "reduce_sum",
    .attrs = {{"dims", AttrKind::list, {}}},
    .infer = reduce_infer,
    .vjp = sum_vjp,
    .shard = reduce_shard,
    .cpu = reduce_kernels(false),
    .cost = reduce_cost,
    .samples = reduce_samples,
    .reference = [](const ReferenceArgs& args) { reference(args, false); },
    .rows = [](const OpInstance& op, Isa isa) { return on_row_tiles(op, isa, false); },
};

const OpDef kReduceMax{
    .name = "reduce_max",
    .attrs = {{"dims", AttrKind::list, {}}},
    .infer = reduce_infer,
    .vjp = max_vjp,
    .shard = max_shard,
    .cpu = reduce_kernels(true),
    .cost = reduce_cost,
    .samples = reduce_samples,
    .reference = [](const ReferenceArgs& args) { reference(args, true); },
    .rows = [](const OpInstance& op, Isa isa) { return on_row_tiles(op, isa, true); },
};

Value reduce_sum(Value x, Dims dims, Where where) {
  return x.graph->add1(kReduceSum, {x}, {{"dims", std::move(dims)}}, where);
}

Value reduce_max(Value x, Dims dims, Where where) {
  return x.graph->add1(kReduceMax, {x}, {{"dims", std::move(dims)}}, where);
}

}  // namespace rhea::ops
