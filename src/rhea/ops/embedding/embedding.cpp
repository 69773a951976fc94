// Rows of embedding and its gradient.      T tokens, V rows of the table, D model dim
#include <algorithm>
#include <cstring>
#include <utility>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::Attrs;
using ir::KernelArgs;
using ir::KernelPlan;
using ir::num_elements;
using ir::OpInstance;
using ir::Sample;
using ir::Type;

bool is_ids(const Type& type) {
  return type.rank() == 1 && (type.dtype == DType::i32 || type.dtype == DType::i64);
}

std::vector<Type> infer_forward(std::span<const Type> in, const Attrs&) {
  if (in.size() != 2) throw Error("takes table and ids, got {} operands", in.size());
  if (in[0].rank() != 2 || !is_float(in[0].dtype) || !is_ids(in[1]))
    throw Error("needs a float table [V,D] and integer ids [T], got {} and {}", to_string(in[0]),
                to_string(in[1]));
  return {{in[0].dtype, {in[1].shape[0], in[0].shape[1]}}};
}

std::vector<Type> infer_grad(std::span<const Type> in, const Attrs& attrs) {
  if (in.size() != 2 && in.size() != 3)
    throw Error("takes dy, ids and perhaps what to add to, got {} operands", in.size());
  if (in[0].rank() != 2 || !is_float(in[0].dtype) || !is_ids(in[1]) ||
      in[0].shape[0] != in[1].shape[0])
    throw Error("needs dy [T,D] and ids [T], got {} and {}", to_string(in[0]), to_string(in[1]));
  const Type table{in[0].dtype == DType::f64 ? DType::f64 : DType::f32,
                   {attrs.i64("rows"), in[0].shape[1]}};
  if (in.size() == 3 && in[2] != table)
    throw Error("adds to a table of type {}, got {}", to_string(table), to_string(in[2]));
  return {table};
}

struct Table {
  int64_t tokens = 0, rows = 0, width = 0;
  bool wide_ids = false;
  int64_t element = 4;        // bytes, forward
  int64_t rows_per_item = 1;  // gradient
  bool adds = false;          // gradient: to a third operand

  int64_t id(const ir::Buffer& ids, int64_t t) const {
    return wide_ids ? ids.as<int64_t>()[t] : ids.as<int32_t>()[t];
  }
};

constexpr int64_t kTokensPerItem = 64;

void run_forward(const KernelArgs& args) {
  const auto& s = *static_cast<const Table*>(args.state);
  const int64_t from_ld = args.in[0].row_stride * s.element,
                to_ld = args.out[0].row_stride * s.element;
  const int64_t end = std::min(s.tokens, args.end * kTokensPerItem);
  for (int64_t t = args.begin * kTokensPerItem; t < end; ++t)
    std::memcpy(args.out[0].as<char>() + t * to_ld,
                args.in[0].as<char>() + s.id(args.in[1], t) * from_ld,
                static_cast<size_t>(s.width * s.element));
}

KernelPlan plan_forward(const OpInstance& node) {
  auto state = std::make_shared<Table>();
  state->tokens = node.in[1].shape[0];
  state->width = node.in[0].shape[1];
  state->wide_ids = node.in[1].dtype == DType::i64;
  state->element = dtype_size(node.in[0].dtype);
  KernelPlan plan;
  plan.grid = {div_up(state->tokens, kTokensPerItem)};
  plan.state = std::move(state);
  plan.run = run_forward;
  plan.strided_in = 1;
  plan.strided_out = 1;
  return plan;
}

// An item owns a range of table rows: it clears them, or takes them from the third operand, and
// adds to each the sum of the tokens that name it, in token order.
template <class In, class Out>
void run_grad(const KernelArgs& args) {
  const auto& s = *static_cast<const Table*>(args.state);
  const int64_t ld = args.in[0].row_stride;
  Out* grad = args.out[0].as<Out>();
  // Tokens of one row are chained in token order.
  auto* sum = static_cast<Out*>(args.scratch);
  auto* first_token = reinterpret_cast<int32_t*>(sum + s.width);
  int32_t* next_token = first_token + s.rows_per_item;
  for (int64_t item = args.begin; item < args.end; ++item) {
    const int64_t first = item * s.rows_per_item, last = std::min(s.rows, first + s.rows_per_item);
    const auto begin = first * s.width, end = last * s.width;
    if (!s.adds)
      std::fill(grad + begin, grad + end, Out{0});
    else if (args.in[2].data != args.out[0].data)
      std::copy(args.in[2].as<Out>() + begin, args.in[2].as<Out>() + end, grad + begin);
    std::fill_n(first_token, s.rows_per_item, -1);
    for (int64_t t = s.tokens; t-- > 0;) {
      const int64_t row = s.id(args.in[1], t) - first;
      if (row < 0 || row >= last - first) continue;
      next_token[t] = std::exchange(first_token[row], static_cast<int32_t>(t));
    }
    for (int64_t row = 0; row < last - first; ++row) {
      if (first_token[row] < 0) continue;
      std::fill_n(sum, s.width, Out{0});
      for (int32_t t = first_token[row]; t >= 0; t = next_token[t]) {
        const In* from = args.in[0].as<In>() + t * ld;
        for (int64_t d = 0; d < s.width; ++d) sum[d] += static_cast<Out>(from[d]);
      }
      Out* to = grad + (first + row) * s.width;
      for (int64_t d = 0; d < s.width; ++d) to[d] += sum[d];
    }
  }
}

KernelPlan plan_grad(const OpInstance& node) {
  auto state = std::make_shared<Table>();
  state->tokens = node.in[1].shape[0];
  state->width = node.in[0].shape[1];
  state->rows = node.out[0].shape[0];
  state->wide_ids = node.in[1].dtype == DType::i64;
  if (state->tokens > INT32_MAX) throw Error("more than 2^31 tokens: {}", state->tokens);
  // Every item reads all ids: few items, but enough for uneven text to spread over the threads.
  state->rows_per_item = std::max<int64_t>(8, div_up(state->rows, 64));
  KernelPlan plan;
  state->adds = node.in.size() == 3;
  plan.grid = {div_up(state->rows, state->rows_per_item)};
  plan.scratch_bytes = state->width * 8 + (state->rows_per_item + state->tokens) * 4;
  if (state->adds) plan.in_place = {{2, 0}};
  plan.state = std::move(state);
  plan.strided_in = 1;
  switch (node.in[0].dtype) {
    case DType::f32:
      plan.run = run_grad<float, float>;
      break;
    case DType::bf16:
      plan.run = run_grad<bf16, float>;
      break;
    case DType::f16:
      plan.run = run_grad<f16, float>;
      break;
    default:
      plan.run = run_grad<double, double>;
      break;
  }
  return plan;
}

std::vector<Value> vjp(const ir::VjpArgs& args) {
  if (!args.cotangents[0].valid()) return {Value{}, Value{}};
  const Value table = args.inputs[0];
  return {args.graph.add1(kEmbeddingGrad, {args.cotangents[0], args.inputs[1]},
                          {{"rows", table.dim(0)}}),
          Value{}};
}

std::vector<Value> vjp_grad(const ir::VjpArgs& args) {
  if (!args.cotangents[0].valid()) return {Value{}, Value{}};
  std::vector<Value> result = {
      convert(embedding(args.cotangents[0], args.inputs[1]), args.inputs[0].dtype()), Value{}};
  if (args.inputs.size() == 3) result.push_back(args.cotangents[0]);
  return result;
}

double moved(const OpInstance& node, const Type& rows) {
  return static_cast<double>(2 * byte_size(rows) + byte_size(node.in[1]));
}

Type ids_type(int64_t tokens, DType dtype = DType::i32) { return {dtype, {tokens}}; }

std::vector<Sample> samples_forward() {
  std::vector<Sample> all;
  for (const DType t : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const std::string name(dtype_name(t));
    all.push_back({"small_" + name, {{{t, {5, 3}}}, {ids_type(4), 0, 4}}, {}});
    all.push_back({"many_" + name,
                   {{{t, {40, 17}}}, {ids_type(150, DType::i64), 0, 39}},
                   {},
                   1,
                   false});  // large: its vjp is `small`'s
  }
  all.push_back({"no_tokens", {{{DType::f32, {5, 3}}}, {ids_type(0), 0, 4}}, {}});
  return all;
}

std::vector<Sample> samples_grad() {
  std::vector<Sample> all;
  for (const DType t : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const std::string name(dtype_name(t));
    all.push_back({"small_" + name, {{{t, {6, 3}}}, {ids_type(6), 0, 4}}, {{"rows", int64_t{5}}}});
    all.push_back({"many_" + name,
                   {{{t, {150, 17}}}, {ids_type(150, DType::i64), 0, 39}},
                   {{"rows", int64_t{600}}},
                   1,
                   false});
  }
  for (const DType t : {DType::f32, DType::bf16, DType::f64})
    all.push_back({"added_" + std::string(dtype_name(t)),
                   {{{t, {6, 3}}},
                    {ids_type(6), 0, 4},
                    {{t == DType::f64 ? DType::f64 : DType::f32, {5, 3}}}},
                   {{"rows", int64_t{5}}}});
  all.push_back(
      {"no_tokens", {{{DType::f32, {0, 3}}}, {ids_type(0), 0, 4}}, {{"rows", int64_t{5}}}});
  return all;
}

}  // namespace

const OpDef kEmbedding{
    .name = "embedding",
    .infer = infer_forward,
    .vjp = vjp,
    .shard = [](const OpInstance&) { return std::string("!vd,t->td"); },
    .cpu = {{"copy_rows", Isa::plain, nullptr, plan_forward}},
    .cost =
        [](const OpInstance& node) {
          return ir::Cost{0, moved(node, node.out[0])};
        },
    .samples = samples_forward,
    .reference =
        [](const ir::ReferenceArgs& args) {
          const auto width = static_cast<size_t>(args.in_types[0].shape[1]);
          for (size_t t = 0; t < args.in[1].size(); ++t)
            std::copy_n(args.in[0].begin() + static_cast<std::ptrdiff_t>(args.in[1][t]) *
                                                 static_cast<std::ptrdiff_t>(width),
                        width, args.out[0].begin() + static_cast<std::ptrdiff_t>(t * width));
        },
};

const OpDef kEmbeddingGrad{
    .name = "embedding_grad",
    .attrs = {{"rows", AttrKind::i64, {}}},
    .infer = infer_grad,
    .vjp = vjp_grad,
    .shard =
        [](const OpInstance& node) {
          // Parts of the tokens would each add the third operand.
          return std::string(node.in.size() == 3 ? "!td,!t,!vd->!vd" : "td,t->!vd");
        },
    .cpu = {{"rows_by_owner", Isa::plain, nullptr, plan_grad}},
    .cost =
        [](const OpInstance& node) {
          const auto elements = static_cast<double>(num_elements(node.in[0].shape));
          // A third operand is added to where it lies: of the table only the rows of the tokens
          // move.
          const double table = node.in.size() == 3 ? 2 * sizeof(float) * elements
                                                   : static_cast<double>(byte_size(node.out[0]));
          return ir::Cost{elements, moved(node, node.in[0]) + table};
        },
    .samples = samples_grad,
    .reference =
        [](const ir::ReferenceArgs& args) {
          const auto width = static_cast<size_t>(args.in_types[0].shape[1]);
          std::fill(args.out[0].begin(), args.out[0].end(), 0.0);
          for (size_t t = 0; t < args.in[1].size(); ++t) {
            for (size_t d = 0; d < width; ++d)
              args.out[0][static_cast<size_t>(args.in[1][t]) * width + d] +=
                  args.in[0][t * width + d];
          }
          if (args.in.size() == 3) {
            for (size_t i = 0; i < args.out[0].size(); ++i) args.out[0][i] += args.in[2][i];
          }
        },
};

Value embedding(Value table_VD, Value ids_T, Where where) {
  return table_VD.graph->add1(kEmbedding, {table_VD, ids_T}, {}, where);
}

}  // namespace rhea::ops
