// The head's product fused with the cross entropy, one copy of the loops per instruction set
// (head_kernels.cpp is compiled once for each).      V vocabulary, D model dim, C tokens of a chunk
//
// A chunk of tokens takes these phases, each a grid of independent items:
//  pack       h of the chunk as panels, tokens as columns (for the logits) and D as columns (for
//  dw) forward    blocks of the vocabulary: logits transposed, words as rows and tokens as vector
//  lanes,
//             so that rows of w are multiplied in place and maximum and sum of a token are
//             lane-wise; the f32 tile gets bias and cap, stays in the core's cache and leaves as
//             exp(logit - maximum of the block), times the slope of the cap, in the dtype of h
//  normalise  maxima and sums of the blocks give the loss and, per token and block, the factor that
//             turns exp into the gradient
//  backward   groups of blocks: exp times factor, minus one at the label, then its products with h
//             (dw, in place) and w (dh, one partial sum per group)
//  finish     partial sums of dh added in the order of the groups
// Bits depend on these grids and not on who runs the items.
//
// h, w, dh and the exps are f32 or bf16. Without an instruction that multiplies bf16, all that is
// multiplied is f32: bf16 are widened once, h into its panels and w, a block at a time, into the
// scratch of the thread; so are the exps, whose gradients stay f32 there, while an f32 gradient
// (and a bf16 one that is multiplied) replaces its exp.
#pragma once
#include <cstdint>

#include "rhea/base/cpu_features.h"
#include "rhea/ops/dot_general/panel_kernels.h"

namespace rhea::ops {

// Words per block, multiples of the rows of every register block. A block of w and its tile of
// logits fit L2. `multiplied`: bytes of an element when it is multiplied.
inline constexpr int64_t kForwardWords = 252;
constexpr int64_t backward_words(int64_t multiplied) { return multiplied == 2 ? 504 : 252; }
inline constexpr int64_t kHeadGroups = 16;
inline constexpr int64_t kTokensPerItem = 16;

// Distance between rows of exp, a cache line more than a row; see f32_row().
constexpr int64_t exps_row(int64_t chunk, int64_t element) { return chunk + 64 / element; }

struct HeadChunk {
  int64_t width, vocabulary;
  int64_t chunk;  // tokens with padding, a multiple of 64
  int64_t count;  // real ones
  const char *h, *w;
  int64_t h_row, w_row;  // elements
  const float* bias;     // [vocabulary], or null
  float cap;             // logits are cap tanh(logit / cap); 0 = none
  const int32_t* labels;
  float grad;                  // factor of the gradient of the logits
  char *h_nk, *h_kn;           // panels of what is multiplied
  int64_t nk_panel, kn_panel;  // bytes of one
  float *maxima, *sums;        // [forward blocks][chunk]; normalise turns the maxima into factors
  float* label_logits;         // [chunk]
  double* losses;              // [chunk]
  char* exps;                  // [vocabulary][exps_row]
  float* partial;              // [groups][chunk][f32_row]
  char* dh;
  int64_t dh_row;
  float* dw;
  int64_t dw_row;
  float* dbias;  // [vocabulary], or null
  bool first;    // chunk: dw and dbias are written, later ones add
  char* scratch;
};
// Bytes of HeadChunk::scratch, for elements of so many bytes in memory and when multiplied.
int64_t head_scratch_bytes(int64_t width, int64_t chunk, int64_t element, int64_t multiplied,
                           bool grads);

struct HeadKernels {
  // Index 0 f32, 1 bf16. Items: pack: chunk/64 + panels of width; forward: blocks; normalise,
  // finish: 16 tokens; backward: groups.
  void (*pack[2])(const HeadChunk& c, int64_t item);
  void (*forward[2])(const HeadChunk& c, int64_t block);  // exps null: only the loss is wanted
  void (*normalise)(const HeadChunk& c, int64_t item);
  void (*backward[2])(const HeadChunk& c, int64_t group);
  void (*finish[2])(const HeadChunk& c, int64_t item);
};
const HeadKernels& head_kernels(Isa isa);

}  // namespace rhea::ops
