// Rows that move elements: broadcast_in_dim reshape transpose slice.
#include <algorithm>
#include <numeric>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"
#include "rhea/ops/shape/copy.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::Attrs;
using ir::OpInstance;
using ir::ReferenceArgs;
using ir::Sample;
using ir::Type;
using ir::VjpArgs;
using Cotangents = std::vector<Value>;
using Dims = std::vector<int64_t>;

int64_t at(const Dims& dims, int64_t i) { return dims[static_cast<size_t>(i)]; }

Dims contiguous_strides(const Shape& shape) {
  Dims strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

void expect_shape(const Shape& shape) {
  for (const int64_t dim : shape) {
    if (dim < 0) throw Error("shape {} has a negative dim", to_string(shape));
  }
}

// The reference of a strided row.
void reference_copy(const ReferenceArgs& args, const StridedSource& source) {
  const Shape& shape = args.out_types[0].shape;
  for (size_t i = 0; i < args.out[0].size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    int64_t from = source.offset;
    for (size_t d = shape.size(); d-- > 0;) {
      from += (rest % shape[d]) * source.strides[d];
      rest /= shape[d];
    }
    args.out[0][i] = args.in[0][static_cast<size_t>(from)];
  }
}

// A row whose result walks the operand by `source(operand type, result type, attrs)`.
using SourceOf = StridedSource (*)(const Type& in, const Type& out, const Attrs& attrs);
void fill_copy_row(OpDef& row, SourceOf source) {
  row.cpu = {{"strided_copy", Isa::plain, nullptr, [source](const OpInstance& op) {
                return strided_copy_plan(op, source(op.in[0], op.out[0], *op.attrs));
              }}};
  row.reference = [source](const ReferenceArgs& args) {
    reference_copy(args, source(args.in_types[0], args.out_types[0], args.attrs));
  };
  row.cost = cost_per_element(0);
}

// ---- broadcast_in_dim

StridedSource broadcast_source(const Type& in, const Type& out, const Attrs& attrs) {
  StridedSource source;
  source.strides.assign(out.shape.size(), 0);
  const Dims& dims = attrs.list("dims");
  const Dims strides = contiguous_strides(in.shape);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (in.shape[d] != 1) source.strides[static_cast<size_t>(dims[d])] = strides[d];
  }
  if (!dims.empty() && in.shape[0] != 1) source.row_dim = static_cast<int>(dims[0]);
  return source;
}

std::vector<Type> broadcast_infer(std::span<const Type> in, const Attrs& attrs) {
  expect_operands(in, {"x"});
  const Shape& shape = attrs.list("shape");
  const Dims& dims = attrs.list("dims");
  expect_shape(shape);
  expect_ascending_dims(dims, static_cast<int64_t>(shape.size()), "dims");
  if (dims.size() != in[0].shape.size()) {
    throw Error("dims must name a result dim for each of the {} dims of {}, got {}",
                in[0].shape.size(), to_string(in[0]), to_string(dims));
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (in[0].shape[d] != 1 && in[0].shape[d] != at(shape, dims[d])) {
      throw Error("dim {} of {} must be 1 or equal dim {} of {}", d, to_string(in[0].shape),
                  dims[d], to_string(shape));
    }
  }
  return {{in[0].dtype, shape}};
}

// Sums what was repeated: first the new dims and the stretched ones, then back to the operand's
// shape.
Cotangents broadcast_vjp(const VjpArgs& args) {
  const Shape& from = args.inputs[0].shape();
  const Dims& dims = args.attrs.list("dims");
  const Shape& to = args.attrs.list("shape");
  Dims summed;
  for (int64_t d = 0; d < static_cast<int64_t>(to.size()); ++d) {
    const auto mapped = std::find(dims.begin(), dims.end(), d);
    const bool stretched =
        mapped != dims.end() && at(from, mapped - dims.begin()) == 1 && at(to, d) != 1;
    if (mapped == dims.end() || stretched) summed.push_back(d);
  }
  Value dx = args.cotangents[0];
  if (!summed.empty()) dx = reduce_sum(dx, summed);
  return {reshape(dx, from)};
}

std::string broadcast_shard(const OpInstance& op) {
  const Dims& dims = op.attrs->list("dims");
  const std::string result = shard_letters(op.out[0].rank());
  std::string operand;
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool stretched = op.in[0].shape[d] == 1 && at(op.out[0].shape, dims[d]) != 1;
    operand += stretched ? '1' : result[static_cast<size_t>(dims[d])];
  }
  return operand + "->" + result;
}

std::vector<Sample> broadcast_samples() {
  const auto sample = [](std::string name, DType dtype, Shape from, Shape to, Dims dims) {
    return Sample{.name = std::move(name),
                  .inputs = {uniform(dtype, std::move(from), 0, 5)},
                  .attrs = {{"shape", std::move(to)}, {"dims", std::move(dims)}}};
  };
  return {sample("scalar", DType::f32, {}, {3, 5}, {}),
          sample("rows", DType::f32, {7}, {3, 7}, {1}),
          sample("columns", DType::bf16, {5}, {5, 9}, {0}),
          sample("stretched", DType::f16, {3, 1, 4}, {3, 6, 4}, {0, 1, 2}),
          sample("middle", DType::f64, {2, 3}, {4, 2, 5, 3}, {1, 3}),
          sample("integers", DType::i64, {3}, {3, 2}, {0}),
          sample("flags", DType::u8, {3}, {2, 3}, {1}),
          sample("same", DType::f32, {2, 3}, {2, 3}, {0, 1}),
          sample("empty", DType::f32, {1, 3}, {0, 3}, {0, 1}),
          sample("blocks", DType::bf16, {41}, {500, 41}, {1})};
}

// ---- reshape

// A factor of each operand dim that survives whole, from the left and from the right; dims that
// are merged or cut in between must not be split.
std::string reshape_shard(const OpInstance& op) {
  const Shape& from = op.in[0].shape;
  const Shape& to = op.out[0].shape;
  const size_t most = std::min(from.size(), to.size());
  size_t left = 0, right = 0;
  while (left < most && from[left] == to[left]) ++left;
  while (right < most - left && from[from.size() - 1 - right] == to[to.size() - 1 - right]) ++right;
  char letter = 'a';
  std::string front, back, operand, result;
  for (size_t i = 0; i < left; ++i) front += letter++;
  for (size_t i = 0; i < right; ++i) back += letter++;
  for (size_t i = left; i < from.size() - right; ++i) (operand += '!') += letter++;
  for (size_t i = left; i < to.size() - right; ++i) (result += '!') += letter++;
  return front + operand + back + "->" + front + result + back;
}

std::vector<Sample> reshape_samples() {
  const auto sample = [](std::string name, DType dtype, Shape from, Shape to) {
    return Sample{.name = std::move(name),
                  .inputs = {uniform(dtype, std::move(from), 0, 9)},
                  .attrs = {{"shape", std::move(to)}}};
  };
  return {sample("split", DType::f32, {5, 12}, {5, 3, 4}),
          sample("merge", DType::bf16, {3, 7, 2}, {21, 2}),
          sample("scalar", DType::f64, {1, 1}, {}),
          sample("integers", DType::i32, {6}, {2, 3}),
          sample("f16", DType::f16, {4, 3}, {3, 4}),
          sample("empty", DType::f32, {0, 4}, {2, 0}),
          sample("blocks", DType::u8, {50, 400}, {20000})};
}

// ---- transpose

StridedSource transpose_source(const Type& in, const Type&, const Attrs& attrs) {
  StridedSource source;
  const Dims strides = contiguous_strides(in.shape);
  const Dims& permutation = attrs.list("permutation");
  for (size_t d = 0; d < permutation.size(); ++d) {
    source.strides.push_back(at(strides, permutation[d]));
    if (permutation[d] == 0) source.row_dim = static_cast<int>(d);
  }
  return source;
}

std::vector<Type> transpose_infer(std::span<const Type> in, const Attrs& attrs) {
  expect_operands(in, {"x"});
  const Dims& permutation = attrs.list("permutation");
  Dims sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  Dims all(in[0].shape.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  if (sorted != all) {
    throw Error("permutation must hold each dim of {} once, got {}", to_string(in[0]),
                to_string(permutation));
  }
  Shape shape;
  for (const int64_t d : permutation) shape.push_back(at(in[0].shape, d));
  return {{in[0].dtype, std::move(shape)}};
}

Cotangents transpose_vjp(const VjpArgs& args) {
  const Dims& permutation = args.attrs.list("permutation");
  Dims inverse(permutation.size());
  for (size_t d = 0; d < permutation.size(); ++d)
    inverse[static_cast<size_t>(permutation[d])] = static_cast<int64_t>(d);
  return {transpose(args.cotangents[0], std::move(inverse))};
}

std::string transpose_shard(const OpInstance& op) {
  const std::string operand = shard_letters(op.in[0].rank());
  std::string result;
  for (const int64_t d : op.attrs->list("permutation")) result += operand[static_cast<size_t>(d)];
  return operand + "->" + result;
}

std::vector<Sample> transpose_samples() {
  const auto sample = [](std::string name, DType dtype, Shape shape, Dims permutation) {
    return Sample{.name = std::move(name),
                  .inputs = {uniform(dtype, std::move(shape), 0, 9)},
                  .attrs = {{"permutation", std::move(permutation)}}};
  };
  return {sample("matrix", DType::f32, {5, 7}, {1, 0}),
          sample("heads", DType::bf16, {6, 3, 8}, {1, 0, 2}),
          sample("reversed", DType::f16, {2, 3, 4}, {2, 1, 0}),
          sample("same", DType::f64, {2, 3}, {0, 1}),
          sample("scalar", DType::f32, {}, {}),
          sample("integers", DType::i64, {2, 5}, {1, 0}),
          sample("empty", DType::f32, {0, 3}, {1, 0}),
          sample("blocks", DType::u8, {130, 150}, {1, 0})};
}

// ---- slice

StridedSource slice_source(const Type& in, const Type&, const Attrs& attrs) {
  StridedSource source;
  source.strides = contiguous_strides(in.shape);
  const Dims& start = attrs.list("start");
  for (size_t d = 0; d < start.size(); ++d) source.offset += start[d] * source.strides[d];
  if (!start.empty()) {
    source.row_dim = 0;
    source.row_offset = start[0];
  }
  return source;
}

std::vector<Type> slice_infer(std::span<const Type> in, const Attrs& attrs) {
  expect_operands(in, {"x"});
  const Dims& start = attrs.list("start");
  const Dims& limit = attrs.list("limit");
  Shape shape;
  bool good = start.size() == in[0].shape.size() && limit.size() == start.size();
  for (size_t d = 0; good && d < start.size(); ++d) {
    good = 0 <= start[d] && start[d] <= limit[d] && limit[d] <= in[0].shape[d];
    shape.push_back(limit[d] - start[d]);
  }
  if (!good) {
    throw Error("slice [start {}, limit {}) does not lie within {}", to_string(start),
                to_string(limit), to_string(in[0]));
  }
  return {{in[0].dtype, std::move(shape)}};
}

Cotangents slice_vjp(const VjpArgs& args) {
  const Dims& start = args.attrs.list("start");
  const Dims& limit = args.attrs.list("limit");
  Dims high;
  for (size_t d = 0; d < start.size(); ++d) high.push_back(args.inputs[0].shape()[d] - limit[d]);
  return {pad(args.cotangents[0], start, std::move(high))};
}

std::vector<Sample> slice_samples() {
  const auto sample = [](std::string name, DType dtype, Shape shape, Dims start, Dims limit) {
    return Sample{.name = std::move(name),
                  .inputs = {uniform(dtype, std::move(shape), 0, 9)},
                  .attrs = {{"start", std::move(start)}, {"limit", std::move(limit)}}};
  };
  return {sample("columns", DType::f32, {5, 12}, {0, 3}, {5, 8}),
          sample("rows", DType::bf16, {9, 4}, {2, 0}, {7, 4}),
          sample("middle", DType::f16, {4, 5, 3}, {1, 2, 0}, {3, 4, 2}),
          sample("all", DType::f64, {2, 3}, {0, 0}, {2, 3}),
          sample("scalar", DType::f32, {}, {}, {}),
          sample("integers", DType::i32, {9}, {4}, {7}),
          sample("nothing", DType::f32, {3, 4}, {1, 2}, {1, 4}),
          sample("blocks", DType::i64, {300, 90}, {3, 5}, {290, 85})};
}

OpDef made(OpDef row, SourceOf source) {
  fill_copy_row(row, source);
  return row;
}

}  // namespace

const OpDef kBroadcastInDim = made(
    {
        .name = "broadcast_in_dim",
        .attrs = {{"shape", AttrKind::list, {}}, {"dims", AttrKind::list, {}}},
        .infer = broadcast_infer,
        .vjp = broadcast_vjp,
        .shard = broadcast_shard,
        .samples = broadcast_samples,
    },
    broadcast_source);

const OpDef kReshape{
    .name = "reshape",
    .attrs = {{"shape", AttrKind::list, {}}},
    .infer =
        [](std::span<const Type> in, const Attrs& attrs) {
          expect_operands(in, {"x"});
          const Shape& shape = attrs.list("shape");
          expect_shape(shape);
          if (num_elements(shape) != num_elements(in[0].shape)) {
            throw Error("{} has {} elements, {} has {}", to_string(in[0].shape),
                        num_elements(in[0].shape), to_string(shape), num_elements(shape));
          }
          return std::vector<Type>{{in[0].dtype, shape}};
        },
    .vjp =
        [](const VjpArgs& args) {
          return Cotangents{reshape(args.cotangents[0], args.inputs[0].shape())};
        },
    .shard = reshape_shard,
    .cpu = {{"copy", Isa::plain, nullptr, flat_copy_plan}},
    .cost = cost_per_element(0),
    .samples = reshape_samples,
    .reference = [](const ReferenceArgs& args) { args.out[0] = args.in[0]; },
};

const OpDef kTranspose = made(
    {
        .name = "transpose",
        .attrs = {{"permutation", AttrKind::list, {}}},
        .infer = transpose_infer,
        .vjp = transpose_vjp,
        .shard = transpose_shard,
        .samples = transpose_samples,
    },
    transpose_source);

const OpDef kSlice = made(
    {
        .name = "slice",
        .attrs = {{"start", AttrKind::list, {}}, {"limit", AttrKind::list, {}}},
        .infer = slice_infer,
        .vjp = slice_vjp,
        .shard = shard_equal_dims,
        .samples = slice_samples,
    },
    slice_source);

Value broadcast_in_dim(Value x, Shape shape, Dims dims, Where where) {
  return x.graph->add1(kBroadcastInDim, {x},
                       {{"shape", std::move(shape)}, {"dims", std::move(dims)}}, where);
}

Value reshape(Value x, Shape shape, Where where) {
  return x.graph->add1(kReshape, {x}, {{"shape", std::move(shape)}}, where);
}

Value transpose(Value x, Dims permutation, Where where) {
  return x.graph->add1(kTranspose, {x}, {{"permutation", std::move(permutation)}}, where);
}

Value slice(Value x, Dims start, Dims limit, Where where) {
  return x.graph->add1(kSlice, {x}, {{"start", std::move(start)}, {"limit", std::move(limit)}},
                       where);
}

Value slice_dim(Value x, int64_t dim, int64_t start, int64_t limit, Where where) {
  Dims from(x.shape().size(), 0), to = x.shape();
  const int64_t d = dim < 0 ? dim + static_cast<int64_t>(to.size()) : dim;
  if (d < 0 || d >= static_cast<int64_t>(to.size()))
    throw Error("slice_dim: {} has no dim {}", to_string(x.type()), dim);
  from[static_cast<size_t>(d)] = start;
  to[static_cast<size_t>(d)] = limit;
  return slice(x, std::move(from), std::move(to), where);
}

}  // namespace rhea::ops
