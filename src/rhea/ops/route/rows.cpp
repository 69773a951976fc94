// Rows dispatch, combine and slot_dots: tokens to the rows of their experts and back.
//
// T tokens, k experts of a token, R = T k rows in the order of experts, D model dim
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/ops/element.h"
#include "rhea/ops/route/route.h"
#include "rhea/ops/route/row_loops.h"
#include "rhea/ops/row.h"
#include "rhea/ops/row_kernels.h"

namespace rhea::ops {
namespace {

using ir::Attrs;
using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;
using ir::Sample;
using ir::Type;

constexpr int64_t kRowsPerItem = 16;
constexpr int64_t kMostSlots = 64;  // of one token

DType sum_dtype(DType dtype) { return accum_dtype(dtype); }

// The order of a batch, operands `first` (slots) and `first` + 1 (rows).
void check_order(std::span<const Type> in, size_t first, int64_t tokens, int64_t rows) {
  const Type& slots = in[first];
  const Type& rows_of_slots = in[first + 1];
  if (slots.dtype != DType::i32 || slots.rank() != 1 || slots.shape[0] != rows ||
      rows_of_slots.dtype != DType::i32 || rows_of_slots.rank() != 2 ||
      num_elements(rows_of_slots.shape) != rows || rows_of_slots.shape[0] != tokens)
    throw Error(
        "needs slots i32 [R] and rows i32 [T,k] with R = T k = {} and T = {}, got {} and {}", rows,
        tokens, to_string(slots), to_string(rows_of_slots));
  if (rows_of_slots.shape[1] > kMostSlots)
    throw Error("a token has at most {} experts, got {}", kMostSlots, to_string(rows_of_slots));
}

void check_rows(const Type& x, std::string_view name) {
  if (x.rank() != 2 || !is_float(x.dtype))
    throw Error("operand '{}' must be a floating point matrix, got {}", name, to_string(x));
}

void check_weights(std::span<const Type> in, DType x) {
  if (in.size() == 4 && (in[3].dtype != sum_dtype(x) || in[3].shape != in[2].shape))
    throw Error("weights must be {}{} as the rows of the slots, got {}", dtype_name(sum_dtype(x)),
                to_string(in[2].shape), to_string(in[3]));
}

void expect_order_operands(std::span<const Type> in) {
  if (in.size() == 4)
    expect_operands(in, {"x", "slots", "rows", "weights"});
  else
    expect_operands(in, {"x", "slots", "rows"});
  check_rows(in[0], "x");
}

std::vector<Type> infer_dispatch(std::span<const Type> in, const Attrs&) {
  expect_order_operands(in);
  check_order(in, 1, in[0].shape[0], num_elements(in[2].shape));
  check_weights(in, in[0].dtype);
  return {{in[0].dtype, {in[1].shape[0], in[0].shape[1]}}};
}

std::vector<Type> infer_combine(std::span<const Type> in, const Attrs&) {
  expect_order_operands(in);
  check_order(in, 1, in[2].rank() == 2 ? in[2].shape[0] : 0, in[0].shape[0]);
  check_weights(in, in[0].dtype);
  return {{in[0].dtype, {in[2].shape[0], in[0].shape[1]}}};
}

std::vector<Type> infer_dots(std::span<const Type> in, const Attrs&) {
  expect_operands(in, {"x", "y", "slots", "rows"});
  check_rows(in[0], "x");
  check_rows(in[1], "y");
  check_order(in, 2, in[1].shape[0], in[0].shape[0]);
  if (in[0].dtype != in[1].dtype || in[0].shape[1] != in[1].shape[1])
    throw Error("x and y must have one dtype and one width, got {} and {}", to_string(in[0]),
                to_string(in[1]));
  return {{sum_dtype(in[0].dtype), in[3].shape}};
}

struct State {
  int64_t tokens = 0, slots = 0, rows = 0, width = 0;
  int64_t element = 4;
  bool weighted = false, wide = false;  // wide: weights and sums are f64
  RowLoops loops{};

  double weight(const KernelArgs& args, int64_t slot) const {
    if (!weighted) return 1;
    return wide ? args.in[3].as<const double>()[slot]
                : static_cast<double>(args.in[3].as<const float>()[slot]);
  }
};

const char* row_of(const State& s, const ir::Buffer& x, int64_t row) {
  return x.as<const char>() + row * x.row_stride * s.element;
}

void run_dispatch(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  const auto* slots = args.in[1].as<const int32_t>();
  const auto bytes = static_cast<size_t>(s.width * s.element);
  const int64_t end = std::min(s.rows, args.end * kRowsPerItem);
  for (int64_t r = args.begin * kRowsPerItem; r < end; ++r) {
    char* to = args.out[0].as<char>() + r * args.out[0].row_stride * s.element;
    if (slots[r] < 0) {
      std::memset(to, 0, bytes);
      continue;
    }
    const char* from = row_of(s, args.in[0], slots[r] / s.slots);
    if (s.weighted)
      s.loops.scale(from, s.weight(args, slots[r]), to, s.width);
    else
      std::memcpy(to, from, bytes);
  }
}

// The slots of token t that have a row, ascending by row, which is ascending by expert.
int64_t sorted_slots(const State& s, const int32_t* rows, int64_t t,
                     std::array<int64_t, kMostSlots>& sorted) {
  int64_t count = 0;
  for (int64_t slot = t * s.slots; slot < (t + 1) * s.slots; ++slot) {
    if (rows[slot] < 0) continue;
    int64_t at = count++;
    for (; at > 0 && rows[sorted[static_cast<size_t>(at - 1)]] > rows[slot]; --at)
      sorted[static_cast<size_t>(at)] = sorted[static_cast<size_t>(at - 1)];
    sorted[static_cast<size_t>(at)] = slot;
  }
  return count;
}

void run_combine(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  const auto* rows = args.in[2].as<const int32_t>();
  std::array<int64_t, kMostSlots> sorted;
  const int64_t end = std::min(s.tokens, args.end * kRowsPerItem);
  for (int64_t t = args.begin * kRowsPerItem; t < end; ++t) {
    std::memset(args.scratch, 0, static_cast<size_t>(s.width * (s.wide ? 8 : 4)));
    const int64_t count = sorted_slots(s, rows, t, sorted);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t slot = sorted[static_cast<size_t>(i)];
      s.loops.add(row_of(s, args.in[0], rows[slot]), s.weight(args, slot), args.scratch, s.width);
    }
    s.loops.store(args.scratch, args.out[0].as<char>() + t * args.out[0].row_stride * s.element,
                  s.width);
  }
}

void run_dots(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  const auto* rows = args.in[3].as<const int32_t>();
  const int64_t end = std::min(s.tokens, args.end * kRowsPerItem);
  for (int64_t slot = args.begin * kRowsPerItem * s.slots; slot < end * s.slots; ++slot) {
    const double sum = rows[slot] < 0 ? 0
                                      : s.loops.dot(row_of(s, args.in[0], rows[slot]),
                                                    row_of(s, args.in[1], slot / s.slots), s.width);
    if (s.wide)
      args.out[0].as<double>()[slot] = sum;
    else
      args.out[0].as<float>()[slot] = static_cast<float>(sum);
  }
}

// f64, for completeness.
constexpr RowLoops kWideLoops = {
    [](const void* from, double weight, void* to, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        static_cast<double*>(to)[i] = weight * static_cast<const double*>(from)[i];
    },
    [](const void* from, double weight, void* sum, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        static_cast<double*>(sum)[i] += weight * static_cast<const double*>(from)[i];
    },
    [](const void* sum, void* to, int64_t n) {
      std::memcpy(to, sum, static_cast<size_t>(n) * sizeof(double));
    },
    [](const void* x, const void* y, int64_t n) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i)
        sum += static_cast<const double*>(x)[i] * static_cast<const double*>(y)[i];
      return sum;
    }};

RowLoops loops_of(DType dtype, Isa isa) {
  if (dtype == DType::f64) return kWideLoops;
  const RowLoops* const per_isa[] = RHEA_PER_ISA(kRowLoops);
  return per_isa[vector_isa(isa)][row_dtype(dtype)];
}

KernelPlan plan(const OpInstance& op, Isa isa) {
  const bool dots = op.op == &kSlotDots, by_row = op.op == &kDispatch;
  const Type &slots = op.in[dots ? 2 : 1], &rows = op.in[dots ? 3 : 2];
  auto state = std::make_shared<State>();
  state->rows = slots.shape[0];
  state->tokens = rows.shape[0];
  state->slots = rows.shape[1];
  state->width = op.in[0].shape[1];
  state->element = dtype_size(op.in[0].dtype);
  state->weighted = !dots && op.in.size() == 4;
  state->wide = op.in[0].dtype == DType::f64;
  state->loops = loops_of(op.in[0].dtype, isa);
  KernelPlan plan;
  plan.grid = {div_up(by_row ? state->rows : state->tokens, kRowsPerItem)};
  plan.scratch_bytes = state->width * 8;
  plan.state = std::move(state);
  plan.run = dots ? run_dots : by_row ? run_dispatch : run_combine;
  plan.strided_in = dots ? 3 : 1;
  plan.strided_out = dots ? 0 : 1;
  return plan;
}

// ---- definitions in f64
size_t at(int64_t i) { return static_cast<size_t>(i); }

void reference_dispatch(const ir::ReferenceArgs& args) {
  const int64_t width = args.out_types[0].shape[1], k = args.in_types[2].shape[1];
  for (int64_t r = 0; r < args.out_types[0].shape[0]; ++r) {
    const auto slot = static_cast<int64_t>(args.in[1][at(r)]);
    for (int64_t d = 0; d < width; ++d) {
      const double weight = args.in.size() == 4 && slot >= 0 ? args.in[3][at(slot)] : 1;
      args.out[0][at(r * width + d)] = slot < 0 ? 0 : weight * args.in[0][at(slot / k * width + d)];
    }
  }
}

void reference_combine(const ir::ReferenceArgs& args) {
  const int64_t width = args.out_types[0].shape[1], k = args.in_types[2].shape[1];
  for (int64_t slot = 0; slot < num_elements(args.in_types[2].shape); ++slot) {
    const auto row = static_cast<int64_t>(args.in[2][at(slot)]);
    if (row < 0) continue;
    const double weight = args.in.size() == 4 ? args.in[3][at(slot)] : 1;
    for (int64_t d = 0; d < width; ++d)
      args.out[0][at(slot / k * width + d)] += weight * args.in[0][at(row * width + d)];
  }
}

void reference_dots(const ir::ReferenceArgs& args) {
  const int64_t width = args.in_types[0].shape[1], k = args.in_types[3].shape[1];
  for (int64_t slot = 0; slot < num_elements(args.in_types[3].shape); ++slot) {
    const auto row = static_cast<int64_t>(args.in[3][at(slot)]);
    for (int64_t d = 0; d < width && row >= 0; ++d)
      args.out[0][at(slot)] +=
          args.in[0][at(row * width + d)] * args.in[1][at(slot / k * width + d)];
  }
}

// ---- gradients
ExpertOrder order_of(std::span<const Value> inputs, size_t first) {
  return {.slots_R = inputs[first], .rows_Tk = inputs[first + 1], .experts_R = {}, .counts_E = {}};
}
std::optional<Value> weights_of(std::span<const Value> inputs) {
  return inputs.size() == 4 ? std::optional(inputs[3]) : std::nullopt;
}
Value slot_dots(Value x_RD, Value y_TD, const ExpertOrder& order) {
  return x_RD.graph->add1(kSlotDots,
                          {x_RD, convert(y_TD, x_RD.dtype()), order.slots_R, order.rows_Tk});
}

std::vector<Value> vjp_dispatch(const ir::VjpArgs& args) {
  std::vector<Value> result(args.inputs.size());
  const Value dy = args.cotangents[0];
  if (!dy.valid()) return result;
  const ExpertOrder order = order_of(args.inputs, 1);
  result[0] = combine(dy, order, weights_of(args.inputs));
  if (args.inputs.size() == 4) result[3] = slot_dots(dy, args.inputs[0], order);
  return result;
}

std::vector<Value> vjp_combine(const ir::VjpArgs& args) {
  std::vector<Value> result(args.inputs.size());
  const Value dy = args.cotangents[0];
  if (!dy.valid()) return result;
  const ExpertOrder order = order_of(args.inputs, 1);
  result[0] = dispatch(dy, order, weights_of(args.inputs));
  if (args.inputs.size() == 4) result[3] = slot_dots(args.inputs[0], dy, order);
  return result;
}

std::vector<Value> vjp_dots(const ir::VjpArgs& args) {
  std::vector<Value> result(args.inputs.size());
  const Value dw = args.cotangents[0];
  if (!dw.valid()) return result;
  const ExpertOrder order = order_of(args.inputs, 2);
  result[0] = dispatch(args.inputs[1], order, dw);
  result[1] = combine(args.inputs[0], order, dw);
  return result;
}

// ---- samples: the order of a few tokens, sorted by hand
// Experts of 4 tokens, k = 2: (2,0) (0,1) (2,1) (0,-): rows of slots below, one slot dropped.
const std::vector<double> kSlots = {1, 2, 6, 3, 5, 0, 4, -1};
const std::vector<double> kRowsOfSlots = {5, 0, 1, 3, 6, 4, 2, -1};

std::vector<Sample> samples(bool rows_first, bool dots) {
  std::vector<Sample> all;
  for (const DType t : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    for (const int64_t width : {int64_t{5}, int64_t{40}}) {
      for (const bool weighted : {false, true}) {
        if (dots && weighted) continue;
        Sample s{.name = std::string(dtype_name(t)) + "_" + std::to_string(width) +
                         (weighted ? "_weighted" : ""),
                 .inputs = {uniform(t, {rows_first ? 8 : 4, width})},
                 .attrs = {}};
        if (dots) s.inputs.push_back(uniform(t, {4, width}));
        s.inputs.push_back(values(DType::i32, {8}, kSlots));
        s.inputs.push_back(values(DType::i32, {4, 2}, kRowsOfSlots));
        if (weighted) s.inputs.push_back(uniform(sum_dtype(t), {4, 2}, 0, 1));
        all.push_back(std::move(s));
      }
    }
  }
  // A token of one expert, more rows than an item has.
  std::vector<double> reversed, places;
  for (int64_t i = 0; i < 50; ++i) reversed.push_back(static_cast<double>(49 - i));
  Sample many{.name = "many", .inputs = {uniform(DType::f32, {50, 3})}, .attrs = {}};
  if (dots) many.inputs.push_back(uniform(DType::f32, {50, 3}));
  many.inputs.push_back(values(DType::i32, {50}, reversed));
  many.inputs.push_back(values(DType::i32, {50, 1}, reversed));
  all.push_back(std::move(many));
  return all;
}

ir::Cost cost_of(const OpInstance& op, int64_t rows, int64_t width) {
  return {2.0 * static_cast<double>(rows) * static_cast<double>(width),
          operand_and_result_bytes(op)};
}

}  // namespace

const OpDef kDispatch{
    .name = "dispatch",
    .infer = infer_dispatch,
    .vjp = vjp_dispatch,
    .shard =
        [](const OpInstance& op) {
          return std::string("!td,!r,!t!k") + (op.in.size() == 4 ? ",!t!k" : "") + "->!rd";
        },
    .cpu = kernels_per_isa("rows", plan),
    .cost =
        [](const OpInstance& op) { return cost_of(op, op.out[0].shape[0], op.out[0].shape[1]); },
    .samples = [] { return samples(false, false); },
    .reference = reference_dispatch,
};

const OpDef kCombine{
    .name = "combine",
    .infer = infer_combine,
    .vjp = vjp_combine,
    .shard =
        [](const OpInstance& op) {
          return std::string("!rd,!r,!t!k") + (op.in.size() == 4 ? ",!t!k" : "") + "->!td";
        },
    .cpu = kernels_per_isa("rows", plan),
    .cost = [](const OpInstance& op) { return cost_of(op, op.in[0].shape[0], op.in[0].shape[1]); },
    .samples = [] { return samples(true, false); },
    .reference = reference_combine,
};

const OpDef kSlotDots{
    .name = "slot_dots",
    .infer = infer_dots,
    .vjp = vjp_dots,
    .shard = [](const OpInstance&) { return std::string("!rd,!td,!r,!t!k->!t!k"); },
    .cpu = kernels_per_isa("rows", plan),
    .cost = [](const OpInstance& op) { return cost_of(op, op.in[0].shape[0], op.in[0].shape[1]); },
    .samples = [] { return samples(true, true); },
    .reference = reference_dots,
};

Value dispatch(Value x_TD, const ExpertOrder& order, std::optional<Value> weights_Tk, Where where) {
  if (weights_Tk)
    return x_TD.graph->add1(kDispatch, {x_TD, order.slots_R, order.rows_Tk, *weights_Tk}, {},
                            where);
  return x_TD.graph->add1(kDispatch, {x_TD, order.slots_R, order.rows_Tk}, {}, where);
}

Value combine(Value x_RD, const ExpertOrder& order, std::optional<Value> weights_Tk, Where where) {
  if (weights_Tk)
    return x_RD.graph->add1(kCombine, {x_RD, order.slots_R, order.rows_Tk, *weights_Tk}, {}, where);
  return x_RD.graph->add1(kCombine, {x_RD, order.slots_R, order.rows_Tk}, {}, where);
}

}  // namespace rhea::ops
