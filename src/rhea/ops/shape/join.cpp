// Rows that place operands into a larger result, and iota: concatenate pad iota.
#include <algorithm>
#include <cstring>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::Attrs;
using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;
using ir::ReferenceArgs;
using ir::Sample;
using ir::Type;
using ir::VjpArgs;
using Cotangents = std::vector<Value>;
using Dims = std::vector<int64_t>;

int64_t product(const Shape& shape, int64_t from, int64_t to) {
  int64_t count = 1;
  for (int64_t d = from; d < to; ++d) count *= shape[static_cast<size_t>(d)];
  return count;
}

// ---- concatenate: the result is rows [outer]; a row holds one run of bytes of each operand

struct ConcatenateState {
  int64_t outer = 0;
  int64_t row_bytes = 0;
  std::vector<int64_t> run_bytes;  // per operand
};

void run_concatenate(const KernelArgs& args) {
  const auto& s = *static_cast<const ConcatenateState*>(args.state);
  for (int64_t row = args.begin; row < args.end; ++row) {
    char* to = args.out[0].as<char>() + row * s.row_bytes;
    for (size_t k = 0; k < s.run_bytes.size(); ++k) {
      const auto bytes = static_cast<size_t>(s.run_bytes[k]);
      if (bytes > 0) std::memcpy(to, args.in[k].as<char>() + row * s.run_bytes[k], bytes);
      to += bytes;
    }
  }
}

KernelPlan concatenate_plan(const OpInstance& op) {
  auto state = std::make_shared<ConcatenateState>();
  const int64_t dim = op.attrs->i64("dim");
  const int64_t size = dtype_size(op.out[0].dtype);
  state->outer = product(op.out[0].shape, 0, dim);
  state->row_bytes = product(op.out[0].shape, dim, op.out[0].rank()) * size;
  for (const Type& type : op.in)
    state->run_bytes.push_back(product(type.shape, dim, type.rank()) * size);
  KernelPlan plan;
  plan.grid = {state->row_bytes == 0 ? 0 : state->outer};
  plan.state = std::move(state);
  plan.run = run_concatenate;
  return plan;
}

std::vector<Type> concatenate_infer(std::span<const Type> in, const Attrs& attrs) {
  if (in.empty()) throw Error("takes at least one operand");
  const int64_t dim = attrs.i64("dim");
  if (dim < 0 || dim >= in[0].rank())
    throw Error("dim must be within the dims of {}, got {}", to_string(in[0]), dim);
  Type out = in[0];
  int64_t& sum = out.shape[static_cast<size_t>(dim)];
  sum = 0;
  for (const Type& type : in) {
    Type expected = in[0];
    if (type.rank() == in[0].rank())
      expected.shape[static_cast<size_t>(dim)] = type.shape[static_cast<size_t>(dim)];
    if (type != expected || type.layout != ir::Layout::row_major) {
      throw Error("operands must be equal except in dim {}, got {} and {}", dim, to_string(in[0]),
                  to_string(type));
    }
    sum += type.shape[static_cast<size_t>(dim)];
  }
  return {out};
}

Cotangents concatenate_vjp(const VjpArgs& args) {
  const int64_t dim = args.attrs.i64("dim");
  Cotangents parts;
  int64_t start = 0;
  for (const Value& input : args.inputs) {
    const int64_t limit = start + input.dim(dim);
    parts.push_back(slice_dim(args.cotangents[0], dim, start, limit));
    start = limit;
  }
  return parts;
}

std::string concatenate_shard(const OpInstance& op) {
  const int64_t dim = op.attrs->i64("dim");
  const std::string letters = shard_letters(op.out[0].rank());
  char letter = static_cast<char>('a' + op.out[0].rank());
  std::string text;
  for (size_t k = 0; k <= op.in.size(); ++k) {
    const bool result = k == op.in.size();
    text += k == 0 ? "" : (result ? "->" : ",");
    for (int64_t d = 0; d < op.out[0].rank(); ++d) {
      if (d == dim) {
        (text += '!') += letter;
        letter = letter == 'z' ? 'A' : static_cast<char>(letter + 1);
      } else {
        text += letters[static_cast<size_t>(d)];
      }
    }
  }
  return text;
}

void concatenate_reference(const ReferenceArgs& args) {
  const int64_t dim = args.attrs.i64("dim");
  const int64_t outer = product(args.out_types[0].shape, 0, dim);
  auto to = args.out[0].begin();
  for (int64_t row = 0; row < outer; ++row) {
    for (size_t k = 0; k < args.in.size(); ++k) {
      const int64_t run = product(args.in_types[k].shape, dim, args.in_types[k].rank());
      to = std::copy_n(args.in[k].begin() + row * run, run, to);
    }
  }
}

std::vector<Sample> concatenate_samples() {
  return {{.name = "columns",
           .inputs = {uniform(DType::f32, {4, 3}), uniform(DType::f32, {4, 5})},
           .attrs = {{"dim", int64_t{1}}}},
          {.name = "rows_of_three",
           .inputs = {uniform(DType::bf16, {2, 6}), uniform(DType::bf16, {1, 6}),
                      uniform(DType::bf16, {3, 6})},
           .attrs = {{"dim", int64_t{0}}}},
          {.name = "middle",
           .inputs = {uniform(DType::f16, {2, 1, 3}), uniform(DType::f16, {2, 4, 3})},
           .attrs = {{"dim", int64_t{1}}}},
          {.name = "empty_part",
           .inputs = {uniform(DType::f64, {2, 0}), uniform(DType::f64, {2, 3})},
           .attrs = {{"dim", int64_t{1}}}},
          {.name = "one_integer_operand",
           .inputs = {uniform(DType::i32, {5}, -9, 9)},
           .attrs = {{"dim", int64_t{0}}}},
          {.name = "flags",
           .inputs = {uniform(DType::boolean, {3, 2}, 0, 1), uniform(DType::boolean, {3, 1}, 0, 1)},
           .attrs = {{"dim", int64_t{1}}}}};
}

// ---- pad: the operand's runs land inside rows of zeros

struct PadState {
  Shape in, out;
  Dims low;
  int64_t size = 0;  // bytes of an element
};

void run_pad(const KernelArgs& args) {
  const auto& s = *static_cast<const PadState*>(args.state);
  const auto rank = static_cast<int64_t>(s.out.size());
  const int64_t to_row = s.out[static_cast<size_t>(rank - 1)] * s.size;
  const int64_t from_row = s.in[static_cast<size_t>(rank - 1)] * s.size;
  const int64_t before = s.low[static_cast<size_t>(rank - 1)] * s.size;
  for (int64_t row = args.begin; row < args.end; ++row) {
    char* to = args.out[0].as<char>() + row * to_row;
    int64_t rest = row, from = 0, stride = 1;
    bool inside = true;
    for (int64_t d = rank - 2; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      const int64_t index = rest % s.out[i] - s.low[i];
      inside &= index >= 0 && index < s.in[i];
      from += index * stride;
      stride *= s.in[i];
      rest /= s.out[i];
    }
    std::memset(to, 0, static_cast<size_t>(to_row));
    if (inside && from_row > 0) {
      std::memcpy(to + before, args.in[0].as<char>() + from * from_row,
                  static_cast<size_t>(from_row));
    }
  }
}

KernelPlan pad_plan(const OpInstance& op) {
  auto state = std::make_shared<PadState>();
  *state = {op.in[0].shape, op.out[0].shape, op.attrs->list("low"), dtype_size(op.out[0].dtype)};
  if (state->out.empty()) {
    state->in = state->out = {1};
    state->low = {0};
  }
  KernelPlan plan;
  const int64_t count = num_elements(state->out);
  plan.grid = {count == 0 ? 0 : count / state->out.back()};
  plan.state = std::move(state);
  plan.run = run_pad;
  return plan;
}

std::vector<Type> pad_infer(std::span<const Type> in, const Attrs& attrs) {
  expect_operands(in, {"x"});
  const Dims& low = attrs.list("low");
  const Dims& high = attrs.list("high");
  bool good = low.size() == in[0].shape.size() && high.size() == low.size();
  Shape shape;
  for (size_t d = 0; good && d < low.size(); ++d) {
    good = low[d] >= 0 && high[d] >= 0;
    shape.push_back(low[d] + in[0].shape[d] + high[d]);
  }
  if (!good) {
    throw Error("low and high must hold a count >= 0 for each dim of {}, got {} and {}",
                to_string(in[0]), to_string(low), to_string(high));
  }
  return {{in[0].dtype, std::move(shape)}};
}

Cotangents pad_vjp(const VjpArgs& args) {
  const Dims& low = args.attrs.list("low");
  Dims limit = low;
  for (size_t d = 0; d < limit.size(); ++d) limit[d] += args.inputs[0].shape()[d];
  return {slice(args.cotangents[0], low, std::move(limit))};
}

void pad_reference(const ReferenceArgs& args) {
  const Shape& in = args.in_types[0].shape;
  const Shape& out = args.out_types[0].shape;
  const Dims& low = args.attrs.list("low");
  for (size_t i = 0; i < args.in[0].size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    int64_t to = 0, stride = 1;
    for (size_t d = in.size(); d-- > 0;) {
      to += (rest % in[d] + low[d]) * stride;
      rest /= in[d];
      stride *= out[d];
    }
    args.out[0][static_cast<size_t>(to)] = args.in[0][i];
  }
}

std::vector<Sample> pad_samples() {
  const auto sample = [](std::string name, DType dtype, Shape shape, Dims low, Dims high) {
    return Sample{.name = std::move(name),
                  .inputs = {uniform(dtype, std::move(shape), 1, 9)},
                  .attrs = {{"low", std::move(low)}, {"high", std::move(high)}}};
  };
  return {sample("columns", DType::f32, {3, 5}, {0, 2}, {0, 4}),
          sample("rows", DType::bf16, {2, 3}, {1, 0}, {2, 0}),
          sample("all_sides", DType::f16, {2, 3, 2}, {1, 0, 3}, {0, 2, 1}),
          sample("nothing", DType::f64, {4}, {0}, {0}),
          sample("scalar", DType::f32, {}, {}, {}),
          sample("integers", DType::i64, {3}, {2}, {2}),
          sample("empty", DType::f32, {0, 2}, {1, 0}, {1, 1})};
}

// ---- iota

struct IotaState {
  int64_t outer = 0, size = 0, inner = 0;
  DType dtype = DType::f32;
};

void run_iota(const KernelArgs& args) {
  const auto& s = *static_cast<const IotaState*>(args.state);
  for (int64_t row = args.begin; row < args.end; ++row) {
    const auto index = static_cast<double>(row % s.size);
    for (int64_t i = 0; i < s.inner; ++i)
      store_from_f64(args.out[0].data, s.dtype, row * s.inner + i, index);
  }
}

KernelPlan iota_plan(const OpInstance& op) {
  auto state = std::make_shared<IotaState>();
  const Shape& shape = op.out[0].shape;
  const int64_t dim = op.attrs->i64("dim");
  *state = {product(shape, 0, dim), shape[static_cast<size_t>(dim)],
            product(shape, dim + 1, op.out[0].rank()), op.out[0].dtype};
  KernelPlan plan;
  plan.grid = {state->inner == 0 ? 0 : state->outer * state->size};
  plan.state = std::move(state);
  plan.run = run_iota;
  return plan;
}

std::vector<Type> iota_infer(std::span<const Type> in, const Attrs& attrs) {
  expect_operands(in, {});
  const Shape& shape = attrs.list("shape");
  const int64_t dim = attrs.i64("dim");
  for (const int64_t size : shape) {
    if (size < 0) throw Error("shape {} has a negative dim", to_string(shape));
  }
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size()))
    throw Error("dim must be within {}, got {}", to_string(shape), dim);
  if (attrs.dtype("dtype") == DType::boolean) throw Error("dtype must be a number type, got bool");
  return {{attrs.dtype("dtype"), shape}};
}

std::string iota_shard(const OpInstance& op) {
  std::string text = "->";
  for (int64_t d = 0; d < op.out[0].rank(); ++d) {
    if (d == op.attrs->i64("dim")) text += '!';
    text += static_cast<char>('a' + d);
  }
  return text;
}

void iota_reference(const ReferenceArgs& args) {
  const Shape& shape = args.out_types[0].shape;
  const int64_t dim = args.attrs.i64("dim");
  const int64_t inner = product(shape, dim + 1, static_cast<int64_t>(shape.size()));
  for (size_t i = 0; i < args.out[0].size(); ++i) {
    args.out[0][i] =
        static_cast<double>(static_cast<int64_t>(i) / inner % shape[static_cast<size_t>(dim)]);
  }
}

std::vector<Sample> iota_samples() {
  const auto sample = [](std::string name, DType dtype, Shape shape, int64_t dim) {
    return Sample{.name = std::move(name),
                  .attrs = {{"shape", std::move(shape)}, {"dtype", dtype}, {"dim", dim}}};
  };
  return {sample("positions", DType::i32, {37}, 0), sample("columns", DType::f32, {3, 9}, 1),
          sample("rows", DType::i64, {4, 5}, 0),    sample("middle", DType::bf16, {2, 3, 4}, 1),
          sample("f16", DType::f16, {9}, 0),        sample("bytes", DType::u8, {2, 200}, 1),
          sample("f64", DType::f64, {5}, 0),        sample("empty", DType::i32, {0, 3}, 1)};
}

}  // namespace

const OpDef kConcatenate{
    .name = "concatenate",
    .attrs = {{"dim", AttrKind::i64, {}}},
    .infer = concatenate_infer,
    .vjp = concatenate_vjp,
    .shard = concatenate_shard,
    .cpu = {{"copy_runs", Isa::plain, nullptr, concatenate_plan}},
    .cost = cost_per_element(0),
    .samples = concatenate_samples,
    .reference = concatenate_reference,
};

const OpDef kPad{
    .name = "pad",
    .attrs = {{"low", AttrKind::list, {}}, {"high", AttrKind::list, {}}},
    .infer = pad_infer,
    .vjp = pad_vjp,
    .shard = shard_equal_dims,
    .cpu = {{"copy_into_zeros", Isa::plain, nullptr, pad_plan}},
    .cost = cost_per_element(0),
    .samples = pad_samples,
    .reference = pad_reference,
};

const OpDef kIota{
    .name = "iota",
    .attrs = {{"shape", AttrKind::list, {}},
              {"dtype", AttrKind::dtype, {}},
              {"dim", AttrKind::i64, {}}},
    .infer = iota_infer,
    .vjp = [](const VjpArgs&) { return Cotangents{}; },
    .shard = iota_shard,
    .cpu = {{"plain", Isa::plain, nullptr, iota_plan}},
    .cost = cost_per_element(0),
    .samples = iota_samples,
    .reference = iota_reference,
};

Value concatenate(std::span<const Value> parts, int64_t dim, Where where) {
  if (parts.empty()) throw Error("concatenate: takes at least one operand");
  const int64_t d = dim < 0 ? dim + parts[0].type().rank() : dim;
  return parts[0].graph->add(kConcatenate, parts, {{"dim", d}}, where)[0];
}

Value pad(Value x, Dims low, Dims high, Where where) {
  return x.graph->add1(kPad, {x}, {{"low", std::move(low)}, {"high", std::move(high)}}, where);
}

Value iota(ir::Graph& graph, Shape shape, DType dtype, int64_t dim, Where where) {
  return graph.add1(kIota, {}, {{"shape", std::move(shape)}, {"dtype", dtype}, {"dim", dim}},
                    where);
}

}  // namespace rhea::ops
