// Rows take_last and put_last: elements of each row by their index.
#include <algorithm>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/ops/element.h"
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

constexpr int64_t kRowsPerItem = 256;

void check(std::span<const Type> in) {
  expect_operands(in, {"x", "index"});
  expect_float(in[0], "x");
  const bool rows_agree =
      in[0].rank() > 0 && in[0].rank() == in[1].rank() &&
      std::equal(in[0].shape.begin(), in[0].shape.end() - 1, in[1].shape.begin());
  if (!rows_agree || in[1].dtype != DType::i32)
    throw Error("index must be i32 with the leading dims of x, got x {} and index {}",
                to_string(in[0]), to_string(in[1]));
}

std::vector<Type> infer_take(std::span<const Type> in, const Attrs&) {
  check(in);
  return {{in[0].dtype, in[1].shape}};
}

std::vector<Type> infer_put(std::span<const Type> in, const Attrs& attrs) {
  check(in);
  const int64_t size = attrs.i64("size");
  if (in[0].shape != in[1].shape)
    throw Error("x and index must have one shape, got {} and {}", to_string(in[0]),
                to_string(in[1]));
  if (size < 0) throw Error("size must not be negative, got {}", size);
  Shape shape = in[0].shape;
  shape.back() = size;
  return {{in[0].dtype, shape}};
}

struct State {
  int64_t rows = 0, n = 0, k = 0;
};

template <class X, class I>
void take_row(const X* x, const I* index, int64_t n, int64_t k, X* y) {
  for (int64_t j = 0; j < k; ++j) {
    const auto i = static_cast<int64_t>(index[j]);
    y[j] = i >= 0 && i < n ? x[i] : X{};
  }
}

template <class X, class I>
void put_row(const X* x, const I* index, int64_t n, int64_t k, X* y) {
  std::fill_n(y, n, X{});
  for (int64_t j = 0; j < k; ++j) {
    const auto i = static_cast<int64_t>(index[j]);
    if (i < 0 || i >= n) continue;
    y[i] = static_cast<X>(static_cast<Accum<X>>(y[i]) + static_cast<Accum<X>>(x[j]));
  }
}

template <class T, bool kTake>
void run(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  const int64_t end = std::min(s.rows, args.end * kRowsPerItem);
  for (int64_t row = args.begin * kRowsPerItem; row < end; ++row) {
    const auto* index = args.in[1].as<const int32_t>() + row * s.k;
    if constexpr (kTake)
      take_row(args.in[0].as<const T>() + row * s.n, index, s.n, s.k,
               args.out[0].as<T>() + row * s.k);
    else
      put_row(args.in[0].as<const T>() + row * s.k, index, s.n, s.k,
              args.out[0].as<T>() + row * s.n);
  }
}

template <bool kTake>
KernelPlan plan(const OpInstance& op) {
  auto state = std::make_shared<State>();
  state->k = op.in[1].shape.back();
  state->n = (kTake ? op.in[0] : op.out[0]).shape.back();
  state->rows = 1;
  for (size_t d = 0; d + 1 < op.in[0].shape.size(); ++d) state->rows *= op.in[0].shape[d];
  KernelPlan plan;
  plan.grid = {div_up(state->rows, kRowsPerItem)};
  plan.state = std::move(state);
  plan.run = dispatch_float(op.in[0].dtype, []<class T>() { return run<T, kTake>; });
  return plan;
}

template <bool kTake>
void reference(const ir::ReferenceArgs& args) {
  const int64_t k = args.in_types[1].shape.back();
  const int64_t n = (kTake ? args.in_types[0] : args.out_types[0]).shape.back();
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < args.in_types[0].shape.size(); ++d) rows *= args.in_types[0].shape[d];
  for (int64_t row = 0; row < rows; ++row) {
    const double* index = args.in[1].data() + row * k;
    if constexpr (kTake)
      take_row(args.in[0].data() + row * n, index, n, k, args.out[0].data() + row * k);
    else
      put_row(args.in[0].data() + row * k, index, n, k, args.out[0].data() + row * n);
  }
}

std::vector<Value> vjp_take(const ir::VjpArgs& args) {
  if (!args.cotangents[0].valid()) return {Value{}, Value{}};
  const Value x = args.inputs[0];
  return {convert(put_last(args.cotangents[0], args.inputs[1], x.dim(-1)), x.dtype()), Value{}};
}

std::vector<Value> vjp_put(const ir::VjpArgs& args) {
  if (!args.cotangents[0].valid()) return {Value{}, Value{}};
  return {convert(take_last(args.cotangents[0], args.inputs[1]), args.inputs[0].dtype()), Value{}};
}

std::vector<Sample> samples(bool take) {
  std::vector<Sample> all;
  const auto add = [&](std::string name, DType dtype, Shape x, int64_t other, double low) {
    Shape index = x;
    if (take) index.back() = other;
    const auto last = static_cast<double>(take ? x.back() : other) - 1;
    Sample s{.name = std::move(name),
             .inputs = {uniform(dtype, std::move(x)),
                        uniform(DType::i32, std::move(index), low, last - low)},
             .attrs = {}};
    if (!take) s.attrs = {{"size", other}};
    all.push_back(std::move(s));
  };
  for (const DType t : {DType::f32, DType::bf16, DType::f16, DType::f64})
    add(std::string(dtype_name(t)), t, {9, 5}, 7, 0);
  add("outside", DType::f32, {6, 4}, 6, -1);
  add("three_dims", DType::f32, {2, 3, 5}, 4, 0);
  add("vector", DType::f32, {12}, 6, 0);
  add("items", DType::f32, {600, 3}, 4, 0);
  add("no_rows", DType::f32, {0, 3}, 4, 0);
  return all;
}

std::string shard(const OpInstance& op) {
  const std::string rows = shard_letters(op.in[0].rank() - 1);
  const bool take = op.op == &kTakeLast;
  return rows + (take ? "!n," : "!k,") + rows + "!k->" + rows + (take ? "!k" : "!n");
}

}  // namespace

const OpDef kTakeLast{
    .name = "take_last",
    .infer = infer_take,
    .vjp = vjp_take,
    .shard = shard,
    .cpu = {{"rows", Isa::plain, nullptr, plan<true>}},
    .cost = cost_per_element(1),
    .samples = [] { return samples(true); },
    .reference = reference<true>,
};

const OpDef kPutLast{
    .name = "put_last",
    .attrs = {{"size", AttrKind::i64, {}}},
    .infer = infer_put,
    .vjp = vjp_put,
    .shard = shard,
    .cpu = {{"rows", Isa::plain, nullptr, plan<false>}},
    .cost = cost_per_element(1),
    .samples = [] { return samples(false); },
    .reference = reference<false>,
};

Value take_last(Value x, Value index, Where where) {
  return x.graph->add1(kTakeLast, {x, index}, {}, where);
}
Value put_last(Value x, Value index, int64_t size, Where where) {
  return x.graph->add1(kPutLast, {x, index}, {{"size", size}}, where);
}

}  // namespace rhea::ops
