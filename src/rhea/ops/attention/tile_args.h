// What the tiled attention kernels (tiles.cpp, compiled once per instruction set) get from their
// plan. Plain data only: kernel files use no inline functions of other headers.
#pragma once
#include <stdint.h>

namespace rhea::ops {

// Tokens lie `stride` elements apart, heads of one token side by side.
struct TileOperand {
  void* data;
  int64_t stride;
};

struct AttentionTiles {
  // S tokens per row, N query heads, K kv heads, G = N / K, H and V widths.
  int64_t row, query_heads, kv_heads, group, width, value_width;
  int64_t window;  // 0: none
  bool documents, is_bf16, sink_is_bf16, has_bias;
  float scale, softcap;
  int64_t num_pairs;  // (row, kv head)
  // Forward: queries of one item (a multiple of the query block) and items per (row, kv head).
  int64_t chunk, num_chunks;

  const int32_t* positions;
  const void* sink;   // null: none
  const float* bias;  // [N][bias_row] by position, null: none
  int64_t bias_row;
  TileOperand q, k, v, o, d_o, dq, dk, dv;
  float* lse;          // [tokens][N]; written by the forward pass, read by the gradient
  const float* d_lse;  // null: none
  float* d_sink;       // [rows][N], null: none
  void* scratch;
};

// Widths are padded to whole vectors, keys to panels, rows to blocks.
inline constexpr int64_t kTileColumns = 16;
inline constexpr int64_t kTilePanel = 64;
inline constexpr int64_t kTileMaxBlock = 256;

}  // namespace rhea::ops

// The kernels of each instruction set: items [begin, end) of a grid of rows * K * num_chunks
// (forward) or rows * K (gradient) items, and the bytes of scratch that one thread needs.
#define RHEA_DECLARE_ATTENTION_TILES(isa)                                                \
  namespace rhea::isa {                                                                  \
  void attention_forward(const ops::AttentionTiles& tiles, int64_t begin, int64_t end);  \
  void attention_backward(const ops::AttentionTiles& tiles, int64_t begin, int64_t end); \
  int64_t attention_forward_scratch(const ops::AttentionTiles& tiles);                   \
  int64_t attention_backward_scratch(const ops::AttentionTiles& tiles);                  \
  }
RHEA_DECLARE_ATTENTION_TILES(isa_plain)
RHEA_DECLARE_ATTENTION_TILES(isa_avx2)
RHEA_DECLARE_ATTENTION_TILES(isa_avx512)
RHEA_DECLARE_ATTENTION_TILES(isa_avx512_bf16)
#undef RHEA_DECLARE_ATTENTION_TILES
