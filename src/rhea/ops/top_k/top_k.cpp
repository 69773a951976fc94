// Row top_k: the k largest elements of each row, for routers and samplers.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "rhea/base/error.h"
#include "rhea/ops/element.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/route/route.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::Attrs;
using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;
using ir::Sample;
using ir::Type;

std::vector<Type> infer(std::span<const Type> in, const Attrs& attrs) {
  expect_operands(in, {"x"});
  expect_float(in[0], "x");
  const int64_t k = attrs.i64("k");
  if (in[0].rank() == 0)
    throw Error("operand 'x' must have a dim to choose from, got {}", to_string(in[0]));
  if (k < 1 || k > in[0].shape.back())
    throw Error("k must be between 1 and the last dim of {}, got {}", to_string(in[0]), k);
  Shape shape = in[0].shape;
  shape.back() = k;
  return {{in[0].dtype, shape}, {DType::i32, shape}};
}

// Does element a stand before element b? NaN counts as the largest; among equals the lower index.
template <class T>
bool before(const T* x, int64_t a, int64_t b) {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto left = static_cast<Wide>(x[a]), right = static_cast<Wide>(x[b]);
  if (std::isnan(left) || std::isnan(right))
    return std::isnan(left) && (!std::isnan(right) || a < b);
  return left != right ? left > right : a < b;
}

// order[0..k) = the chosen indices of one row of n.
template <class T>
void choose(const T* x, int64_t n, int64_t k, int64_t* order) {
  std::iota(order, order + n, int64_t{0});
  std::partial_sort(order, order + k, order + n,
                    [x](int64_t a, int64_t b) { return before(x, a, b); });
}

struct State {
  DType dtype = DType::f32;
  int64_t rows = 0, n = 0, k = 0;
};
constexpr int64_t kRowsPerItem = 64;

void run(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  auto* order = static_cast<int64_t*>(args.scratch);
  dispatch_dtype(s.dtype, [&]<class T>() {
    const int64_t end = std::min(s.rows, args.end * kRowsPerItem);
    for (int64_t row = args.begin * kRowsPerItem; row < end; ++row) {
      const T* x = args.in[0].as<T>() + row * s.n;
      choose(x, s.n, s.k, order);
      for (int64_t j = 0; j < s.k; ++j) {
        args.out[0].as<T>()[row * s.k + j] = x[order[j]];
        args.out[1].as<int32_t>()[row * s.k + j] = static_cast<int32_t>(order[j]);
      }
    }
  });
}

KernelPlan plan(const OpInstance& op) {
  auto state = std::make_shared<State>();
  state->dtype = op.in[0].dtype;
  state->n = op.in[0].shape.back();
  state->k = op.out[0].shape.back();
  state->rows = num_elements(op.out[0].shape) / state->k;
  KernelPlan plan;
  plan.grid = {div_up(state->rows, kRowsPerItem)};
  plan.scratch_bytes = state->n * static_cast<int64_t>(sizeof(int64_t));
  plan.state = std::move(state);
  plan.run = run;
  return plan;
}

void reference(const ir::ReferenceArgs& args) {
  const int64_t n = args.in_types[0].shape.back(), k = args.out_types[0].shape.back();
  std::vector<int64_t> order(static_cast<size_t>(n));
  const int64_t rows = num_elements(args.out_types[0].shape) / k;
  for (int64_t row = 0; row < rows; ++row) {
    const double* x = args.in[0].data() + row * n;
    choose(x, n, k, order.data());
    for (int64_t j = 0; j < k; ++j) {
      const int64_t index = order[static_cast<size_t>(j)];
      args.out[0][static_cast<size_t>(row * k + j)] = x[index];
      args.out[1][static_cast<size_t>(row * k + j)] = static_cast<double>(index);
    }
  }
}

// The cotangents go where the values came from.
std::vector<Value> vjp(const ir::VjpArgs& args) {
  if (!args.cotangents[0].valid()) return {Value{}};
  const Value x = args.inputs[0];
  return {convert(put_last(args.cotangents[0], args.outputs[1], x.dim(-1)), x.dtype())};
}

std::string shard(const OpInstance& op) {
  const std::string rows = shard_letters(op.in[0].rank() - 1);
  return rows + "!n->" + rows + "!k," + rows + "!k";
}

std::vector<Sample> samples() {
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto sample = [](std::string name, DType dtype, Shape shape, int64_t k) {
    return Sample{
        .name = std::move(name), .inputs = {uniform(dtype, std::move(shape))}, .attrs = {{"k", k}}};
  };
  std::vector<Sample> all = {
      sample("router", DType::f32, {9, 8}, 2),    sample("three_dims", DType::f32, {2, 3, 5}, 1),
      sample("whole_row", DType::f32, {4, 6}, 6), sample("vector", DType::f32, {37}, 4),
      sample("bf16", DType::bf16, {5, 16}, 3),    sample("f16", DType::f16, {5, 16}, 3),
      sample("f64", DType::f64, {3, 7}, 2),       sample("no_rows", DType::f32, {0, 5}, 2),
      sample("items", DType::f32, {150, 64}, 8)};
  for (Sample& s : all) s.check_vjp = s.name != "bf16" && s.name != "f16";  // their values tie
  all.push_back(
      {.name = "special",
       .inputs = {values(DType::f32, {3, 5},
                         {nan, 1, inf, nan, 2, -inf, -inf, 0, -0.0, -inf, 1, 1, 1, 1, 1})},
       .attrs = {{"k", int64_t{3}}},
       .check_vjp = false});
  return all;
}

}  // namespace

const OpDef kTopK{
    .name = "top_k",
    .attrs = {{"k", AttrKind::i64, {}}},
    .infer = infer,
    .vjp = vjp,
    .shard = shard,
    .cpu = {{"partial_sort", Isa::plain, nullptr, plan}},
    // A comparison an element for the first, log2 k for each that enters.
    .cost =
        [](const OpInstance& op) {
          const auto k = static_cast<double>(op.out[0].shape.back());
          return ir::Cost{static_cast<double>(num_elements(op.in[0].shape)) * (1 + std::log2(k)),
                          operand_and_result_bytes(op)};
        },
    .samples = samples,
    .reference = reference,
};

std::vector<Value> top_k(Value x, int64_t k, Where where) {
  return x.graph->add(kTopK, {{x}}, {{"k", k}}, where);
}

}  // namespace rhea::ops
