// Row of dot_general: every matrix product of a model, its input gradient and its weight gradient.
#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/ops/dot_general/product.h"
#include "rhea/ops/f64_product.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::Attrs;
using ir::Layout;
using ir::num_elements;
using ir::OpInstance;
using ir::Sample;
using ir::Type;

int64_t last_but(const Type& type, int64_t i) {
  return type.shape[type.shape.size() - 1 - static_cast<size_t>(i)];
}

// Dim `which` (0 or 1) of the last two.
int64_t matrix_dim(const Type& type, int64_t which) { return last_but(type, 1 - which); }

std::vector<Type> infer(std::span<const Type> in, const Attrs& attrs) {
  if (in.size() != 2) throw Error("takes 2 operands, got {}", in.size());
  const Type& a = in[0];
  const Type& b = in[1];
  const int64_t lhs = attrs.i64("lhs_contract"), rhs = attrs.i64("rhs_contract");
  if (lhs < 0 || lhs > 1 || rhs < 0 || rhs > 1)
    throw Error("lhs_contract and rhs_contract must be 0 or 1, got {} and {}", lhs, rhs);
  if (a.rank() < 2 || a.rank() != b.rank())
    throw Error("needs two operands of one rank of at least 2, got {} and {}", to_string(a),
                to_string(b));
  if (!is_float(a.dtype) || a.dtype != b.dtype || !is_float(attrs.dtype("dtype")))
    throw Error("needs floating point operands of one dtype, got {} and {} for a result in {}",
                to_string(a), to_string(b), dtype_name(attrs.dtype("dtype")));
  if (a.layout != Layout::row_major)
    throw Error("the left operand cannot be packed, got {}", to_string(a));
  if (b.layout != Layout::row_major) {
    const int64_t needed = b.layout == Layout::panels_nk ? 1 : 0;
    if (b.rank() != 2 || rhs != needed || lhs != 1)
      throw Error("a right operand in {} needs lhs_contract 1 and rhs_contract {}, got {} and {}",
                  to_string(b), needed, lhs, rhs);
  }
  if (matrix_dim(a, lhs) != matrix_dim(b, rhs))
    throw Error("contracted dims differ: {} of {} is {}, {} of {} is {}", lhs, to_string(a),
                matrix_dim(a, lhs), rhs, to_string(b), matrix_dim(b, rhs));
  Type result{attrs.dtype("dtype"), {}, Layout::row_major};
  for (size_t i = 0; i + 2 < a.shape.size(); ++i) {
    if (a.shape[i] != b.shape[i])
      throw Error("batch dim {} differs: {} and {}", i, to_string(a), to_string(b));
    result.shape.push_back(a.shape[i]);
  }
  result.shape.push_back(matrix_dim(a, 1 - lhs));
  result.shape.push_back(matrix_dim(b, 1 - rhs));
  return {result};
}

// With C = A B: the cotangent of A is dC B^T and that of B is A^T dC, each stored as its operand
// is.
std::vector<Value> vjp(const ir::VjpArgs& args) {
  const Value a = args.inputs[0], b = args.inputs[1], dc = args.cotangents[0];
  if (!dc.valid()) return {Value{}, Value{}};
  if (b.type().layout != Layout::row_major)
    throw Error("no gradient through a packed operand: passes pack after differentiating");
  const int64_t lhs = args.attrs.i64("lhs_contract"), rhs = args.attrs.i64("rhs_contract");
  // A result wider than its operands (f32 logits of bf16 operands) has a wide cotangent: widen the
  // operands instead of rounding it.
  const auto like_dc = [&](Value x) { return convert(x, dc.dtype()); };
  const Value a_wide = like_dc(a), b_wide = like_dc(b);
  const Value da = lhs == 1 ? dot_general(dc, b_wide, 1, 1 - rhs, a.dtype())
                            : dot_general(b_wide, dc, 1 - rhs, 1, a.dtype());
  // The weight of a linear layer gets its gradient in f32, never rounded to the compute dtype:
  // gradients are summed in f32.
  const bool weight = lhs == 1 && rhs == 1 && b.type().rank() == 2;
  const DType db_dtype = weight && b.dtype() != DType::f64 ? DType::f32 : b.dtype();
  const Value db = rhs == 0 ? dot_general(a_wide, dc, 1 - lhs, 0, db_dtype)
                            : dot_general(dc, a_wide, 0, 1 - lhs, db_dtype);
  return {da, db};
}

std::string shard(const OpInstance& node) {
  const int64_t lhs = node.attrs->i64("lhs_contract"), rhs = node.attrs->i64("rhs_contract");
  // 'm' free of a, 'n' free of b, 'k' contracted; batch dims a, b, c, ...
  std::string batch;
  for (int64_t i = 0; i + 2 < node.in[0].rank(); ++i) batch += static_cast<char>('a' + i);
  return batch + (lhs == 1 ? "mk" : "km") + "," + batch + (rhs == 1 ? "nk" : "kn") + "->" + batch +
         "mn";
}

ir::Cost cost(const OpInstance& node) {
  const Product p = product_of(node);
  return {
      2.0 * static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) *
          static_cast<double>(p.k),
      static_cast<double>(byte_size(node.in[0]) + byte_size(node.in[1]) + byte_size(node.out[0]))};
}

void reference(const ir::ReferenceArgs& args) {
  const OpInstance node{&kDotGeneral, args.in_types, args.out_types, &args.attrs};
  const Product p = product_of(node);
  // Reference operands are row-major whatever the layout says: a packed B is the same logical
  // matrix.
  const bool b_is_nk = args.attrs.i64("rhs_contract") == 1;
  std::fill(args.out[0].begin(), args.out[0].end(), 0.0);
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    const F64Matrix a = row_major(args.in[0].data() + batch * p.m * p.k, p.a_row());
    const F64Matrix b = row_major(args.in[1].data() + batch * p.k * p.n, b_is_nk ? p.k : p.n);
    add_f64_product(p.m, p.n, p.k, p.a_transposed ? a.transposed() : a,
                    b_is_nk ? b.transposed() : b, args.out[0].data() + batch * p.m * p.n);
  }
}

Sample sample(std::string name, Type a, Type b, int64_t lhs, int64_t rhs, DType dtype) {
  const bool small = num_elements(a.shape) + num_elements(b.shape) <= 600;
  return {std::move(name),
          {{std::move(a)}, {std::move(b)}},
          {{"lhs_contract", lhs}, {"rhs_contract", rhs}, {"dtype", dtype}},
          1,
          small};
}

std::vector<Sample> samples() {
  using enum DType;
  std::vector<Sample> all;
  for (const DType t : {f32, bf16, f16, f64}) {
    const std::string name(dtype_name(t));
    all.push_back(sample("linear_" + name, {t, {5, 7}}, {t, {3, 7}}, 1, 1, t));
    all.push_back(sample("input_gradient_" + name, {t, {5, 3}}, {t, {3, 7}}, 1, 0, t));
    all.push_back(
        sample("weight_gradient_" + name, {t, {9, 3}}, {t, {9, 7}}, 0, 0, t == f64 ? f64 : f32));
    all.push_back(sample("both_transposed_" + name, {t, {6, 4}}, {t, {5, 6}}, 0, 1, t));
    all.push_back(sample("batched_" + name, {t, {2, 3, 4, 5}}, {t, {2, 3, 5, 2}}, 1, 0, t));
  }
  for (const DType t : {f32, bf16}) {
    const std::string name(dtype_name(t));
    // Sizes around every block: 256-row blocks with a tail, panels with a tail, odd reductions.
    all.push_back(sample("tails_linear_" + name, {t, {300, 77}}, {t, {131, 77}}, 1, 1, t));
    all.push_back(sample("tails_input_gradient_" + name, {t, {300, 131}}, {t, {131, 70}}, 1, 0, t));
    all.push_back(
        sample("tails_weight_gradient_" + name, {t, {203, 131}}, {t, {203, 70}}, 0, 0, f32));
    all.push_back(
        sample("wide_weight_gradient_" + name, {t, {203, 70}}, {t, {203, 131}}, 0, 0, f32));
    // More tokens than are summed in one go.
    all.push_back(
        sample("long_weight_gradient_" + name, {t, {2100, 9}}, {t, {2100, 70}}, 0, 0, f32));
    all.push_back(sample("blocks_linear_" + name, {t, {256, 128}}, {t, {192, 128}}, 1, 1, t));
    all.push_back(
        sample("blocks_weight_gradient_" + name, {t, {256, 192}}, {t, {256, 128}}, 0, 0, f32));
    all.push_back(sample("one_row_" + name, {t, {1, 96}}, {t, {160, 96}}, 1, 1, t));
    all.push_back(
        sample("panels_nk_" + name, {t, {13, 77}}, {t, {131, 77}, Layout::panels_nk}, 1, 1, t));
    all.push_back(
        sample("panels_kn_" + name, {t, {13, 131}}, {t, {131, 77}, Layout::panels_kn}, 1, 0, t));
    all.push_back(sample("panels_nk_wide_" + name, {t, {270, 128}},
                         {t, {192, 128}, Layout::panels_nk}, 1, 1, f32));
    all.push_back(sample("no_rows_" + name, {t, {0, 4}}, {t, {3, 4}}, 1, 1, t));
    all.push_back(sample("no_reduction_" + name, {t, {2, 0}}, {t, {3, 0}}, 1, 1, t));
    for (auto& s : all) {
      if (s.inputs[1].type.layout != Layout::row_major)
        s.check_vjp = false;  // no gradient through a packed operand
    }
  }
  return all;
}

#if RHEA_WITH_ONEDNN
// The kernel, whose plans say in their notes why it comes before those after it.
ir::CpuKernel with_reason(ir::CpuKernel kernel, std::string reason) {
  kernel.plan = [plan = std::move(kernel.plan),
                 reason = std::move(reason)](const OpInstance& node) {
    ir::KernelPlan made = plan(node);
    made.note += (made.note.empty() ? "" : "; ") + reason;
    return made;
  };
  return kernel;
}

std::vector<ir::CpuKernel> kernels() {
  const char* faster = "before onednn: faster on the models' shapes (docs/notes/018)";
  return {
      with_reason(onednn_on_tiles(), "before panels: the CPU has matrix tiles (docs/notes/014)"),
      with_reason(panel_product(Isa::avx512_bf16), faster),
      with_reason(panel_product(Isa::avx512), faster),
      with_reason(onednn_product(), "before panels_avx2: reads the right operand in rows"),
      panel_product(Isa::avx2),
      panel_product(Isa::plain),
      plain_product(),
  };
}
#else
std::vector<ir::CpuKernel> kernels() {
  return {panel_product(Isa::avx512_bf16), panel_product(Isa::avx512), panel_product(Isa::avx2),
          panel_product(Isa::plain), plain_product()};
}
#endif

}  // namespace

Product product_of(const OpInstance& node) {
  Product p;
  const Type& a = node.in[0];
  const Type& b = node.in[1];
  p.rank = a.rank();
  for (size_t i = 0; i + 2 < a.shape.size(); ++i) p.batch *= a.shape[i];
  const bool weight_grad = node.op == &kWeightGradSquares || node.op == &kWeightGradAdd;
  const int64_t lhs = weight_grad ? 0 : node.attrs->i64("lhs_contract"),
                rhs = weight_grad ? 0 : node.attrs->i64("rhs_contract");
  p.m = matrix_dim(a, 1 - lhs);
  p.k = matrix_dim(a, lhs);
  p.n = matrix_dim(b, 1 - rhs);
  p.a_transposed = lhs == 0;
  p.b_layout = b.layout;
  p.b_transposed = rhs == 1 && b.layout == Layout::row_major;
  p.in = a.dtype;
  p.out = node.out[0].dtype;
  return p;
}

bool runs_on_tiles([[maybe_unused]] const OpInstance& node) {
#if RHEA_WITH_ONEDNN
  return onednn_on_tiles().accepts(node).empty();
#else
  return false;
#endif
}

const OpDef kDotGeneral{
    .name = "dot_general",
    .attrs = {{"lhs_contract", AttrKind::i64, {}},
              {"rhs_contract", AttrKind::i64, {}},
              {"dtype", AttrKind::dtype, {}}},
    .infer = infer,
    .vjp = vjp,
    .shard = shard,
    .cpu = kernels(),
    .cost = cost,
    .samples = samples,
    .reference = reference,
};

Value dot_general(Value a, Value b, int64_t lhs_contract, int64_t rhs_contract, DType dtype,
                  Where where) {
  return a.graph->add1(
      kDotGeneral, {a, b},
      {{"lhs_contract", lhs_contract}, {"rhs_contract", rhs_contract}, {"dtype", dtype}}, where);
}

Value linear(Value x, Value w_NK, Where where) {
  if (x.type().rank() == 2) return dot_general(x, w_NK, 1, 1, x.dtype(), where);
  // Rows of all leading dims joined: one product.
  const int64_t k = x.dim(-1);
  Shape shape = x.shape();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  const Value y = dot_general(reshape(x, {rows, k}, where), w_NK, 1, 1, x.dtype(), where);
  shape.back() = y.dim(1);
  return reshape(y, shape, where);
}

}  // namespace rhea::ops
