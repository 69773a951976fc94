// Rows of a tensor replaced at a position that is data: how a key-value cache grows.
#include <algorithm>
#include <cstring>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using ir::OpInstance;
using ir::Type;

// StableHLO clamps the start so that the update lies inside.
int64_t clamped(int64_t start, int64_t rows, int64_t count) {
  return std::clamp<int64_t>(start, 0, rows - count);
}

std::vector<Type> infer(std::span<const Type> in, const ir::Attrs&) {
  expect_operands(in, {"operand", "update", "start"});
  const Type &operand = in[0], &update = in[1];
  if (operand.rank() == 0 || operand.rank() != update.rank() || operand.dtype != update.dtype ||
      !std::equal(operand.shape.begin() + 1, operand.shape.end(), update.shape.begin() + 1))
    throw Error("update {} is not rows of operand {}", to_string(update), to_string(operand));
  if (update.shape[0] > operand.shape[0])
    throw Error("update has {} rows, operand only {}", update.shape[0], operand.shape[0]);
  if (in[2] != Type{DType::i32, {}}) throw Error("start must be i32[], got {}", to_string(in[2]));
  return {operand};
}

struct State {
  int64_t rows, count, row_bytes;
};

ir::KernelPlan plan(const OpInstance& op) {
  const Type &operand = op.in[0], &update = op.in[1];
  const int64_t rows = operand.shape[0];
  const int64_t row_bytes = rows == 0 ? 0 : byte_size(operand) / rows;
  ir::KernelPlan made;
  made.state = std::make_shared<State>(State{rows, update.shape[0], row_bytes});
  made.in_place = {{0, 0}};
  made.run = [](const ir::KernelArgs& args) {
    const auto& state = *static_cast<const State*>(args.state);
    auto* out = args.out[0].as<char>();
    const auto* in = args.in[0].as<const char>();
    if (out != in) std::memcpy(out, in, static_cast<size_t>(state.rows * state.row_bytes));
    const int64_t start = clamped(*args.in[2].as<const int32_t>(), state.rows, state.count);
    std::memcpy(out + start * state.row_bytes, args.in[1].as<const char>(),
                static_cast<size_t>(state.count * state.row_bytes));
  };
  return made;
}

}  // namespace

const OpDef kDynamicUpdateSlice{
    .name = "dynamic_update_slice",
    .infer = infer,
    .shard =
        [](const OpInstance& op) {
          const std::string rest = shard_letters(op.in[0].rank() - 1, 'c');
          return "!a" + rest + ",!b" + rest + ",->!a" + rest;
        },
    .cpu = {{.name = "copy_rows", .plan = plan}},
    .cost =
        [](const OpInstance& op) {
          return ir::Cost{0, 2.0 * static_cast<double>(byte_size(op.in[1]))};
        },
    .samples =
        [] {
          // Inference only: no gradient.
          const auto sample = [](const char* name, DType dtype, Shape operand, int64_t rows,
                                 double start) {
            Shape update = operand;
            update[0] = rows;
            return ir::Sample{.name = name,
                              .inputs = {uniform(dtype, operand), uniform(dtype, update),
                                         values(DType::i32, {}, {start})},
                              .check_vjp = false};
          };
          return std::vector<ir::Sample>{
              sample("middle", DType::f32, {7, 3, 4}, 2, 3),
              sample("clamped", DType::bf16, {7, 5}, 3, 6), sample("all", DType::f64, {4, 2}, 4, 0),
              sample("none", DType::f32, {4, 2}, 0, 1), sample("negative", DType::i32, {4}, 1, -2)};
        },
    .reference =
        [](const ir::ReferenceArgs& args) {
          args.out[0] = args.in[0];
          const int64_t rows = args.in_types[0].shape[0];
          const int64_t row = rows == 0 ? 0 : num_elements(args.in_types[0].shape) / rows;
          const int64_t start =
              clamped(static_cast<int64_t>(args.in[2][0]), rows, args.in_types[1].shape[0]);
          std::copy(args.in[1].begin(), args.in[1].end(), args.out[0].begin() + start * row);
        },
};

Value dynamic_update_slice(Value operand, Value update, Value start, Where where) {
  return operand.graph->add1(kDynamicUpdateSlice, {operand, update, start}, {}, where);
}

}  // namespace rhea::ops
