// Matrix products of groups of rows, each with a matrix of its own: the experts of a layer. How
// many rows a group has is data.
//
// R rows, E groups, K reduction, N result, M and N of a weight. Group e has the counts_E[e] rows
// after those of the groups before it; rows after the last group are never read.
#pragma once
#include <vector>

#include "rhea/ops/ops.h"

namespace rhea::ops {

// rhs_contract 1: y = x w[e]^T with w [E,N,K]; 0: y = x w[e] with w [E,K,N]. Rows of no group are
// 0. Sums in f32 (f64 for f64), rounded once to x's dtype. w may be packed (ir::Layout), its
// leading two dims taken as one: panels_nk with rhs_contract 1 where N is a multiple of 64,
// panels_kn with 0 where K is even.
extern const OpDef kGroupedProduct;  // (x_RK, w, counts i32 [E])
Value grouped_product(Value x_RK, Value w, Value counts_E, int64_t rhs_contract,
                      Where where = Where::current());

// dw[e] = a_e^T b_e, [E,M,N] in f32 (f64 for f64); exactly 0 for a group without rows.
extern const OpDef kGroupedWeightGrad;  // (a_RM, b_RN, counts i32 [E])

// The kernels of the two rows, packed and plain.
ir::CpuKernel grouped_panels(Isa isa);
ir::CpuKernel grouped_plain();
ir::CpuKernel grouped_grad_panels(Isa isa);
ir::CpuKernel grouped_grad_plain();

// Whether packed copies of w keep the groups apart (see kGroupedProduct).
bool can_pack_groups(const ir::Type& w, ir::Layout layout);

// Rows [first, first + count) of a group.
struct GroupRows {
  int64_t first = 0, count = 0;  // in rows
};
// Of group e; damaged counts are cut at the number of rows.
template <class Count>
GroupRows group_rows(const Count* counts_E, int64_t e, int64_t num_rows) {
  GroupRows rows;
  for (int64_t i = 0; i <= e; ++i) {
    rows.first += rows.count;
    const auto count = static_cast<int64_t>(counts_E[i]);
    const int64_t left = num_rows - rows.first;
    rows.count = count < 0 ? 0 : count < left ? count : left;
  }
  return rows;
}

}  // namespace rhea::ops
