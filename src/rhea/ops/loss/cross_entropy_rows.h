// Cross entropy of one row of finished logits by vectors (cross_entropy_rows.cpp, compiled once per
// instruction set).
#pragma once
#include <stdint.h>

namespace rhea::ops {

struct CrossEntropyRow {
  int dtype;  // of the logits: 0 f32, 1 bf16, 2 f16
  int64_t vocabulary;
  const void* logits;
  int64_t label;     // in [0, vocabulary), or negative: the loss is NaN
  void* grad;        // of the logits; null: only the loss is wanted; may be `logits`
  float grad_scale;  // its factor
};

}  // namespace rhea::ops

// Returns logsumexp - logit of the label.
#define RHEA_DECLARE_CROSS_ENTROPY(isa)                  \
  namespace rhea::isa {                                  \
  double cross_entropy_row(const ops::CrossEntropyRow&); \
  }
RHEA_DECLARE_CROSS_ENTROPY(isa_avx2)
RHEA_DECLARE_CROSS_ENTROPY(isa_avx512)
#undef RHEA_DECLARE_CROSS_ENTROPY
