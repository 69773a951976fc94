// Rows grouped_product and grouped_weight_grad.      R rows, E groups, K reduction, N result
#include "rhea/ops/grouped/grouped.h"

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/ops/element.h"
#include "rhea/ops/f64_product.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::Attrs;
using ir::Layout;
using ir::OpInstance;
using ir::Sample;
using ir::Type;

void check_counts(const Type& counts, int64_t groups) {
  if (counts.dtype != DType::i32 || counts.rank() != 1 ||
      (groups >= 0 && counts.shape[0] != groups))
    throw Error("counts must be i32 [E]{}, got {}",
                groups >= 0 ? fmt::format(" with E = {}", groups) : "", to_string(counts));
}

void check_matrix(const Type& x, std::string_view name) {
  if (x.rank() != 2 || !is_float(x.dtype) || x.layout != Layout::row_major)
    throw Error("operand '{}' must be a row-major floating point matrix, got {}", name,
                to_string(x));
}

std::vector<Type> infer_product(std::span<const Type> in, const Attrs& attrs) {
  if (in.size() != 3) throw Error("takes 3 operands (x, w, counts), got {}", in.size());
  const int64_t contract = attrs.i64("rhs_contract");
  if (contract != 0 && contract != 1) throw Error("rhs_contract must be 0 or 1, got {}", contract);
  check_matrix(in[0], "x");
  const Type& w = in[1];
  if (w.rank() != 3 || w.dtype != in[0].dtype)
    throw Error("operand 'w' must be a {} tensor [E,{}], got {}", dtype_name(in[0].dtype),
                contract == 1 ? "N,K" : "K,N", to_string(w));
  if (w.shape[contract == 1 ? 2 : 1] != in[0].shape[1])
    throw Error("contracted dims differ: x {} and w {}, rhs_contract {}", to_string(in[0]),
                to_string(w), contract);
  if (w.layout != Layout::row_major &&
      (w.layout != (contract == 1 ? Layout::panels_nk : Layout::panels_kn) ||
       !can_pack_groups(w, w.layout)))
    throw Error("w {} does not suit rhs_contract {}", to_string(w), contract);
  check_counts(in[2], w.shape[0]);
  return {{in[0].dtype, {in[0].shape[0], w.shape[contract == 1 ? 1 : 2]}}};
}

std::vector<Type> infer_grad(std::span<const Type> in, const Attrs&) {
  expect_operands(in, {"a", "b", "counts"});
  check_matrix(in[0], "a");
  check_matrix(in[1], "b");
  if (in[0].dtype != in[1].dtype || in[0].shape[0] != in[1].shape[0])
    throw Error("a and b must have one dtype and the same rows, got {} and {}", to_string(in[0]),
                to_string(in[1]));
  check_counts(in[2], -1);
  return {{accum_dtype(in[0].dtype), {in[2].shape[0], in[0].shape[1], in[1].shape[1]}}};
}

// Packed operands come in row-major order here (ir::ReferenceArgs).
void reference_product(const ir::ReferenceArgs& args) {
  const int64_t rows = args.in_types[0].shape[0], k = args.in_types[0].shape[1],
                n = args.out_types[0].shape[1], groups = args.in_types[1].shape[0];
  const bool nk = args.attrs.i64("rhs_contract") == 1;
  for (int64_t e = 0; e < groups; ++e) {
    const GroupRows group = group_rows(args.in[2].data(), e, rows);
    const double* w = args.in[1].data() + e * n * k;
    double* c = args.out[0].data() + group.first * n;
    std::fill_n(c, group.count * n, 0.0);
    add_f64_product(group.count, n, k, row_major(args.in[0].data() + group.first * k, k),
                    nk ? row_major(w, k).transposed() : row_major(w, n), c);
  }
}

void reference_grad(const ir::ReferenceArgs& args) {
  const int64_t rows = args.in_types[0].shape[0], m = args.in_types[0].shape[1],
                n = args.in_types[1].shape[1], groups = args.in_types[2].shape[0];
  for (int64_t e = 0; e < groups; ++e) {
    const GroupRows group = group_rows(args.in[2].data(), e, rows);
    add_f64_product(
        m, n, group.count, row_major(args.in[0].data() + group.first * m, m).transposed(),
        row_major(args.in[1].data() + group.first * n, n), args.out[0].data() + e * m * n);
  }
}

Value weight_grad(Value a_RM, Value b_RN, Value counts_E) {
  return a_RM.graph->add1(kGroupedWeightGrad, {a_RM, b_RN, counts_E});
}

std::vector<Value> vjp_product(const ir::VjpArgs& args) {
  const Value dy = args.cotangents[0];
  if (!dy.valid()) return {Value{}, Value{}, Value{}};
  const Value x = args.inputs[0], w = args.inputs[1], counts = args.inputs[2];
  if (w.type().layout != Layout::row_major)
    throw Error("no gradient through a packed operand: passes pack after differentiating");
  const bool nk = args.attrs.i64("rhs_contract") == 1;
  const Value dy_x = convert(dy, x.dtype());
  return {grouped_product(dy_x, w, counts, nk ? 0 : 1),
          nk ? weight_grad(dy_x, x, counts) : weight_grad(x, dy_x, counts), Value{}};
}

std::vector<Value> vjp_grad(const ir::VjpArgs& args) {
  if (!args.cotangents[0].valid()) return {Value{}, Value{}, Value{}};
  const Value a = args.inputs[0], b = args.inputs[1], counts = args.inputs[2];
  const Value dw = convert(args.cotangents[0], a.dtype());
  return {grouped_product(b, dw, counts, 1), grouped_product(a, dw, counts, 0), Value{}};
}

ir::Cost cost(const OpInstance& op) {
  const bool product = op.op == &kGroupedProduct;
  const Type& wide = product ? op.in[1] : op.out[0];
  return {2.0 * static_cast<double>(op.in[0].shape[0]) * static_cast<double>(wide.shape[1]) *
              static_cast<double>(wide.shape[2]),
          operand_and_result_bytes(op)};
}

struct Case {
  std::string name;
  std::vector<double> counts;
  int64_t rows, k, n;
};
// Empty groups at both ends, rows of no group, one group with all.
const Case kSmall[] = {{"groups", {0, 3, 1, 0, 2, 0}, 8, 7, 5},
                       {"one_group", {0, 6, 0}, 6, 3, 4},
                       {"no_rows_used", {0, 0}, 4, 3, 2},
                       {"no_rows", {0, 0, 0}, 0, 4, 3},
                       {"no_reduction", {2, 1}, 3, 0, 4}};
// Around the blocks of the kernels: more rows than one block, tails of panels and strips.
const Case kLarge[] = {{"tails", {70, 0, 133}, 205, 77, 131},
                       {"blocks", {64, 300, 4}, 368, 96, 128},
                       {"narrow", {5, 60, 40}, 105, 200, 48},
                       {"long", {1, 2080}, 2081, 9, 70}};

ir::SampleInput counts_of(const Case& c) {
  return values(DType::i32, {static_cast<int64_t>(c.counts.size())}, c.counts);
}

std::vector<Sample> samples_product() {
  std::vector<Sample> all;
  const auto add = [&](const Case& c, DType t, int64_t contract, Layout layout, bool check) {
    const auto groups = static_cast<int64_t>(c.counts.size());
    ir::SampleInput w =
        uniform(t, contract == 1 ? Shape{groups, c.n, c.k} : Shape{groups, c.k, c.n});
    w.type.layout = layout;
    all.push_back(
        {.name = fmt::format("{}_{}_{}{}", c.name, dtype_name(t), contract == 1 ? "nk" : "kn",
                             layout == Layout::row_major ? "" : "_packed"),
         .inputs = {uniform(t, {c.rows, c.k}), w, counts_of(c)},
         .attrs = {{"rhs_contract", contract}},
         .check_vjp = check});
  };
  for (const int64_t contract : {int64_t{1}, int64_t{0}}) {
    for (const Case& c : kSmall) {
      for (const DType t : {DType::f32, DType::bf16, DType::f16, DType::f64})
        add(c, t, contract, Layout::row_major, true);
    }
    const Layout packed = contract == 1 ? Layout::panels_nk : Layout::panels_kn;
    for (const Case& c : kLarge) {
      for (const DType t : {DType::f32, DType::bf16}) {
        add(c, t, contract, Layout::row_major, false);
        const auto groups = static_cast<int64_t>(c.counts.size());
        const Type w{t, contract == 1 ? Shape{groups, c.n, c.k} : Shape{groups, c.k, c.n}};
        if (can_pack_groups(w, packed)) add(c, t, contract, packed, false);
      }
    }
  }
  return all;
}

std::vector<Sample> samples_grad() {
  std::vector<Sample> all;
  const auto add = [&](const Case& c, DType t, bool check) {
    all.push_back({.name = fmt::format("{}_{}", c.name, dtype_name(t)),
                   .inputs = {uniform(t, {c.rows, c.k}), uniform(t, {c.rows, c.n}), counts_of(c)},
                   .attrs = {},
                   .check_vjp = check});
  };
  for (const Case& c : kSmall) {
    for (const DType t : {DType::f32, DType::bf16, DType::f16, DType::f64}) add(c, t, true);
  }
  for (const Case& c : kLarge) {
    for (const DType t : {DType::f32, DType::bf16}) add(c, t, false);
  }
  return all;
}

}  // namespace

bool can_pack_groups(const Type& w, Layout layout) {
  if (w.rank() != 3 || (w.dtype != DType::f32 && w.dtype != DType::bf16)) return false;
  return layout == Layout::panels_nk ? w.shape[1] % 64 == 0 : w.shape[1] % 2 == 0;
}

const OpDef kGroupedProduct{
    .name = "grouped_product",
    .attrs = {{"rhs_contract", AttrKind::i64, {}}},
    .infer = infer_product,
    .vjp = vjp_product,
    .shard =
        [](const OpInstance& op) {
          return std::string(op.attrs->i64("rhs_contract") == 1 ? "!rk,!enk,!e->!rn"
                                                                : "!rk,!ekn,!e->!rn");
        },
    .cpu = {grouped_panels(Isa::avx512_bf16), grouped_panels(Isa::avx512),
            grouped_panels(Isa::avx2), grouped_panels(Isa::plain), grouped_plain()},
    .cost = cost,
    .samples = samples_product,
    .reference = reference_product,
};

const OpDef kGroupedWeightGrad{
    .name = "grouped_weight_grad",
    .infer = infer_grad,
    .vjp = vjp_grad,
    .shard = [](const OpInstance&) { return std::string("!rm,!rn,!e->!emn"); },
    .cpu = {grouped_grad_panels(Isa::avx512_bf16), grouped_grad_panels(Isa::avx512),
            grouped_grad_panels(Isa::avx2), grouped_grad_panels(Isa::plain), grouped_grad_plain()},
    .cost = cost,
    .samples = samples_grad,
    .reference = reference_grad,
};

Value grouped_product(Value x_RK, Value w, Value counts_E, int64_t rhs_contract, Where where) {
  return x_RK.graph->add1(kGroupedProduct, {x_RK, w, counts_E}, {{"rhs_contract", rhs_contract}},
                          where);
}

}  // namespace rhea::ops
