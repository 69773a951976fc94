// The loops of the delta ops (delta_loops.cpp, compiled once per instruction set).
#pragma once
#include <stdint.h>

namespace rhea::ops {

struct ConvArgs {
  int64_t channels, taps, seq_len;
  const float *x, *w, *dy;  // dy: gradient only
  const int32_t* positions;
  float *y, *dx, *dw;
  float* scratch;  // channels of a block by (2 * taps)
};

struct DeltaArgs {
  int64_t seq_len, key_heads, value_heads, key_dim, value_dim;
  const float *q, *k, *v, *g, *beta, *d_o;  // d_o: gradient only
  const int32_t* positions;
  float* o;
  float *dq, *dk, *dv, *dg, *dbeta;
  float* scratch;  // delta_scratch() or delta_grad_scratch() floats
};
// Tokens whose states the gradient keeps at a time; the others it computes again from the first of
// each chunk.
inline int64_t delta_chunk(int64_t seq_len) {
  int64_t chunk = 1;
  while (chunk * chunk < seq_len) ++chunk;
  return chunk;
}
inline int64_t delta_scratch(int64_t key_dim, int64_t value_dim) {
  return key_dim * value_dim + 2 * value_dim;
}
inline int64_t delta_grad_scratch(int64_t seq_len, int64_t key_dim, int64_t value_dim) {
  const int64_t chunk = delta_chunk(seq_len), chunks = seq_len / chunk + 1;
  return (chunk + chunks + 3) * key_dim * value_dim + 4 * value_dim;
}

}  // namespace rhea::ops

#define RHEA_DECLARE_DELTA(isa)                                                                   \
  namespace rhea::isa {                                                                           \
  /* Tokens [begin, end) of all channels. */                                                      \
  void conv_tokens(const ops::ConvArgs& args, int64_t begin, int64_t end);                        \
  /* Channels [begin, end) of all `tokens`. */                                                    \
  void conv_grad_channels(const ops::ConvArgs& args, int64_t tokens, int64_t begin, int64_t end); \
  /* The value heads of one key head over the tokens of one row. */                               \
  void delta_forward(const ops::DeltaArgs& args, int64_t row, int64_t key_head);                  \
  void delta_backward(const ops::DeltaArgs& args, int64_t row, int64_t key_head);                 \
  }
RHEA_DECLARE_DELTA(isa_plain)
#if defined(__x86_64__)
RHEA_DECLARE_DELTA(isa_avx2)
RHEA_DECLARE_DELTA(isa_avx512)
#endif
#undef RHEA_DECLARE_DELTA
