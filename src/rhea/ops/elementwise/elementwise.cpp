// Rows and kernels of elementwise operations.
#include "rhea/ops/elementwise/elementwise.h"

#include <cmath>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/ops/row.h"

namespace rhea::ops {

using ir::Attrs;
using ir::CpuKernel;
using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;
using ir::Sample;
using ir::Type;

namespace {

bool accepts(Numbers numbers, DType dtype) {
  switch (numbers) {
    case Numbers::floats:
      return is_float(dtype);
    case Numbers::signed_numbers:
      return is_float(dtype) || dtype == DType::i32 || dtype == DType::i64;
    case Numbers::numbers:
      return dtype != DType::boolean;
    default:
      return true;
  }
}

std::string_view accepted_names(Numbers numbers) {
  constexpr std::string_view names[] = {"floating point", "floating point, i32 or i64",
                                        "a number type (not bool)", "any type"};
  return names[static_cast<int>(numbers)];
}

// Types whose values are exact in f32 tiles.
bool fits_tile(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16 ||
         dtype == DType::boolean;
}

std::string accepts_tile(const OpInstance& op) {
  for (const Type& type : op.in) {
    if (!fits_tile(type.dtype)) return "operand of type " + std::string(dtype_name(type.dtype));
  }
  if (!fits_tile(op.out[0].dtype))
    return "result of type " + std::string(dtype_name(op.out[0].dtype));
  return "";
}

KernelPlan base_plan(const OpInstance& op) {
  KernelPlan plan;
  const int64_t count = num_elements(op.out[0].shape);
  plan.grid = {div_up(count, ElementwiseState::kBlock)};
  for (int i = 0; i < static_cast<int>(op.in.size()); ++i) {
    if (dtype_size(op.in[static_cast<size_t>(i)].dtype) == dtype_size(op.out[0].dtype))
      plan.in_place.emplace_back(i, 0);
  }
  plan.strided_in = (uint64_t{1} << op.in.size()) - 1;
  plan.strided_out = 1;
  return plan;
}

KernelPlan tile_plan(const OpInstance& op, ir::TileFn tile, void (*run)(const KernelArgs&)) {
  KernelPlan plan = base_plan(op);
  auto state = std::make_shared<ElementwiseState>();
  state->tile = tile;
  state->attrs = *op.attrs;
  state->num_operands = static_cast<int>(op.in.size());
  for (size_t i = 0; i < op.in.size(); ++i) state->in[i] = op.in[i].dtype;
  state->out = op.out[0].dtype;
  state->count = num_elements(op.out[0].shape);
  state->row = std::max<int64_t>(1, contiguous_row_stride(op.out[0].shape));
  plan.state = state;
  plan.run = run;
  return plan;
}

struct ScalarState {
  ElementwiseState shape;
  double (*f64)(const double*, const Attrs&);
  int64_t (*integer)(const int64_t*, const Attrs&);
};

int64_t load_integer(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::i32:
      return static_cast<const int32_t*>(data)[i];
    case DType::i64:
      return static_cast<const int64_t*>(data)[i];
    default:
      return static_cast<const uint8_t*>(data)[i];
  }
}

void store_integer(void* data, DType dtype, int64_t i, int64_t value) {
  switch (dtype) {
    case DType::i32:
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
      break;
    case DType::i64:
      static_cast<int64_t*>(data)[i] = value;
      break;
    case DType::u8:
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value);
      break;
    default:
      static_cast<uint8_t*>(data)[i] = value != 0;
  }
}

// Calls f(element, offset of the element in operand or result k) for the elements of the range.
template <class F>
void for_each_element(const KernelArgs& args, const ElementwiseState& s, F f) {
  const int64_t end = std::min(args.end * ElementwiseState::kBlock, s.count);
  for (int64_t i = args.begin * ElementwiseState::kBlock; i < end; ++i) {
    const int64_t row = i / s.row, column = i % s.row;
    f([&](const ir::Buffer& buffer) { return row * buffer.row_stride + column; });
  }
}

// One element at a time in f64: f64 tensors, and every other type mix.
void run_f64(const KernelArgs& args) {
  const auto& s = *static_cast<const ScalarState*>(args.state);
  for_each_element(args, s.shape, [&](auto offset) {
    double x[ElementwiseState::kMaxOperands];
    for (int k = 0; k < s.shape.num_operands; ++k)
      x[k] = load_as_f64(args.in[k].data, s.shape.in[k], offset(args.in[k]));
    store_from_f64(args.out[0].data, s.shape.out, offset(args.out[0]), s.f64(x, s.shape.attrs));
  });
}

// The same for integers and flags, exact over the whole range of the types.
void run_integer(const KernelArgs& args) {
  const auto& s = *static_cast<const ScalarState*>(args.state);
  for_each_element(args, s.shape, [&](auto offset) {
    int64_t x[ElementwiseState::kMaxOperands];
    for (int k = 0; k < s.shape.num_operands; ++k)
      x[k] = load_integer(args.in[k].data, s.shape.in[k], offset(args.in[k]));
    store_integer(args.out[0].data, s.shape.out, offset(args.out[0]), s.integer(x, s.shape.attrs));
  });
}

KernelPlan scalar_plan(const OpInstance& op, double (*f64)(const double*, const Attrs&),
                       int64_t (*integer)(const int64_t*, const Attrs&),
                       void (*run)(const KernelArgs&)) {
  KernelPlan plan = tile_plan(op, nullptr, run);
  plan.state = std::make_shared<ScalarState>(
      ScalarState{*static_cast<const ElementwiseState*>(plan.state.get()), f64, integer});
  return plan;
}

}  // namespace

std::vector<CpuKernel> elementwise_kernels(const ElementwiseSpec& spec) {
  std::vector<CpuKernel> kernels;
#if defined(__x86_64__)
  constexpr std::pair<std::string_view, void (*)(const KernelArgs&)> runs[] = {
      {"tiles_plain", isa_plain::run_elementwise},
      {"tiles_avx2", isa_avx2::run_elementwise},
      {"tiles_avx512", isa_avx512::run_elementwise}};
#else
  constexpr std::pair<std::string_view, void (*)(const KernelArgs&)> runs[] = {
      {"tiles_plain", isa_plain::run_elementwise}};
#endif
  for (int isa = static_cast<int>(std::size(runs)) - 1; isa >= 0; --isa) {
    const ir::TileFn tile = spec.tile[static_cast<size_t>(isa)];
    const auto [name, run] = runs[isa];
    if (tile == nullptr) continue;
    kernels.push_back(
        {name, static_cast<Isa>(isa), accepts_tile,
         [tile, run = run](const OpInstance& op) { return tile_plan(op, tile, run); }});
  }
  if (spec.integer != nullptr) {
    const auto accepts_integer = [](const OpInstance& op) -> std::string {
      for (const Type& type : op.in) {
        if (is_float(type.dtype)) return "operand of type " + std::string(dtype_name(type.dtype));
      }
      return is_float(op.out[0].dtype) ? "floating point result" : "";
    };
    kernels.push_back({"integer", Isa::plain, accepts_integer,
                       [f64 = spec.f64, integer = spec.integer](const OpInstance& op) {
                         return scalar_plan(op, f64, integer, run_integer);
                       }});
  }
  kernels.push_back(
      {"f64", Isa::plain, nullptr, [f64 = spec.f64, integer = spec.integer](const OpInstance& op) {
         return scalar_plan(op, f64, integer, run_f64);
       }});
  return kernels;
}

std::vector<Sample> elementwise_samples(const ElementwiseSpec& spec) {
  std::vector<Sample> samples;
  const auto add = [&](std::string name, DType dtype, Shape shape) {
    Sample sample{.name = std::move(name), .attrs = spec.sample_attrs};
    sample.check_vjp = spec.smooth;
    for (int i = 0; i < spec.num_operands; ++i) {
      const auto [low, high] =
          spec.ranges.empty() ? std::pair(-3.0, 3.0) : spec.ranges[static_cast<size_t>(i)];
      sample.inputs.push_back(uniform(dtype, shape, low, high));
    }
    samples.push_back(std::move(sample));
  };
  add("odd", DType::f32, {3, 37});
  add("bf16", DType::bf16, {2, 5, 17});
  add("f16", DType::f16, {33});
  add("f64", DType::f64, {4, 5});
  add("scalar", DType::f32, {});
  add("empty", DType::f32, {2, 0, 3});
  add("two_blocks", DType::f32, {3, 5500});
  samples.back().check_vjp = false;  // 16500 differences would take long
  Sample special{.name = "special", .attrs = spec.sample_attrs, .check_vjp = false};
  const auto n = static_cast<int64_t>(special_values().size());
  for (int i = 0; i < spec.num_operands; ++i) {
    // all pairs of special values
    std::vector<double> elements;
    for (int64_t k = 0; k < (spec.num_operands == 1 ? n : n * n); ++k)
      elements.push_back(special_values()[static_cast<size_t>(i == 0 ? k % n : k / n)]);
    const auto count = static_cast<int64_t>(elements.size());
    special.inputs.push_back(values(DType::f32, {count}, std::move(elements)));
  }
  samples.push_back(special);
  if (spec.integer != nullptr) {
    for (const DType dtype : {DType::i32, DType::i64, DType::u8}) {
      if (!accepts(spec.accepts, dtype)) continue;
      Sample sample{.name = std::string(dtype_name(dtype)), .attrs = spec.sample_attrs};
      for (int i = 0; i < spec.num_operands; ++i)
        sample.inputs.push_back(uniform(dtype, {3, 7}, dtype == DType::u8 ? 0 : -9, 9));
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

ir::OpDef elementwise_row(ElementwiseSpec spec) {
  ir::OpDef row;
  row.name = spec.name;
  row.attrs = spec.attrs;
  row.infer = spec.infer;
  if (!row.infer) {
    row.infer = [count = spec.num_operands, numbers = spec.accepts](std::span<const Type> in,
                                                                    const Attrs&) {
      if (count == 1) {
        expect_operands(in, {"x"});
      } else {
        expect_operands(in, {"a", "b"});
      }
      expect_same_types(in);
      if (!accepts(numbers, in[0].dtype))
        throw Error("operands must be {}, got {}", accepted_names(numbers), to_string(in[0]));
      return std::vector<Type>{in[0]};
    };
  }
  row.decompose = spec.decompose;
  row.vjp = spec.vjp;
  row.shard = shard_elementwise;
  row.cpu = elementwise_kernels(spec);
  row.cost = cost_per_element(spec.flops);
  row.reference = [f64 = spec.f64](const ir::ReferenceArgs& args) {
    double x[ElementwiseState::kMaxOperands];
    for (size_t i = 0; i < args.out[0].size(); ++i) {
      for (size_t k = 0; k < args.in.size(); ++k) x[k] = args.in[k][i];
      args.out[0][i] = f64(x, args.attrs);
    }
  };
  row.tile = spec.tile;
  row.samples = [spec = std::move(spec)] { return elementwise_samples(spec); };
  return row;
}

}  // namespace rhea::ops
