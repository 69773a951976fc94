// Sizes and options of an attention node, shared by its rows and kernels.
//
// Letters: T tokens, S row length, B = T / S rows, N query heads, K kv heads, G = N / K, H width of
// q and k, V width of v.
#pragma once
#include <cstdint>
#include <span>

#include "rhea/ir/attr.h"
#include "rhea/ir/cpu_kernel.h"

namespace rhea::ops {

struct AttentionShape {
  int64_t tokens = 0, row = 0, rows = 0;
  int64_t query_heads = 0, kv_heads = 0, group = 0;
  int64_t width = 0, value_width = 0;
  int64_t window = 0;  // 0: none
  double scale = 1, softcap = 0;
  bool documents = false, has_sink = false, has_bias = false;
  int64_t bias_row = 0;  // positions that the bias table has
  DType dtype = DType::f32;

  static AttentionShape of(const ir::OpInstance& op);
  // Visible (query, key) pairs of one head, all rows, as if every row were one document.
  double visible_pairs() const;
  bool empty() const { return tokens == 0 || query_heads == 0 || width == 0 || value_width == 0; }
};

// Operands of both rows come in this order; absent ones take no place.
struct AttentionOperands {
  int q = 0, k = 1, v = 2, positions = 3;
  int sink = -1, bias = -1;                    // both rows
  int o = -1, lse = -1, d_o = -1, d_lse = -1;  // gradient only
  explicit AttentionOperands(const ir::Attrs& attrs, bool grad);
  int count = 4;
};

// Throw unless the types are those of sink logits and of a bias table beside q.
void check_sink(const ir::Type& sink, const ir::Type& q_TNH);
void check_bias(const ir::Type& bias, const ir::Type& q_TNH, int64_t num_positions);

// First key that each query of one row may see: its document's start (documents only), or the start
// of its window if that is later. `positions` are those of the row. Never falls with the query.
void first_visible_keys(const AttentionShape& shape, const int32_t* positions, int32_t* first);

}  // namespace rhea::ops
