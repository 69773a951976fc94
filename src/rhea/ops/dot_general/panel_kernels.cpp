#include "rhea/ops/dot_general/panel_kernels.h"

#include "rhea/ops/dot_general/micro.h"
#include "rhea/ops/pack/pack_panel.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

// The rows that are packed next, a piece with each block: a half of each, then the other.
RHEA_INLINE Ahead next_rows(const ops::RowsBlock& g, int64_t block, int64_t steps,
                            const void* at_hand) {
  const int64_t fetched = block * (steps / 16);
  if (fetched >= 2 * g.next_rows) return nothing_ahead(at_hand);
  const int64_t half = fetched / g.next_rows, row = fetched % g.next_rows;
  return {g.next + row * g.next_stride + half * 128, g.next_stride};
}

template <class Words>
void multiply_rows(const ops::RowsBlock& g) {
  constexpr int kColumns = kVectorsInPlace * kVector;
  const int64_t steps = g.k / Words::kPair;
  const bool odd = g.k % Words::kPair != 0;
  const int64_t parts = ops::parts_of(steps);
  for (int64_t n = 0; n < g.columns; n += kPanelColumns) {
    const float* panel =
        reinterpret_cast<const float*>(g.panels + n / kPanelColumns * g.panel_bytes);
    const int64_t columns = g.columns - n < kPanelColumns ? g.columns - n : kPanelColumns;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t from = steps * part / parts, to = steps * (part + 1) / parts;
      const bool last = part + 1 == parts;
      for (int64_t r = 0; r < g.rows; r += kRowsInPlace) {
        const int64_t rows = g.rows - r < kRowsInPlace ? g.rows - r : kRowsInPlace;
        const char* a = g.a + r * g.a_stride + from * 4;
        // The next panel, a piece with each block of rows.
        const Ahead ahead = n + kPanelColumns < g.columns
                                ? Ahead{reinterpret_cast<const char*>(panel) + g.panel_bytes +
                                            r / kRowsInPlace * (steps / 16) * 128,
                                        128}
                                : next_rows(g, r / kRowsInPlace, to - from, panel);
        for (int64_t j = 0; j < columns; j += kColumns) {
          const auto block = [&](const auto& write) {
            rows_in_place<Words, kRowsInPlace, kVectorsInPlace>(
                rows, to - from, odd && last, a, g.a_stride, panel + from * kPanelColumns + j,
                write, ahead);
          };
          float* sums = reinterpret_cast<float*>(g.scratch) + r * kPanelColumns + j;
          if (!g.bf16_result)  // an f32 result is its own place for partial sums
            block(ToF32{static_cast<float*>(g.c) + r * g.ldc + n + j, g.ldc, columns - j,
                        g.add || part > 0});
          else if (!last)
            block(ToF32{sums, kPanelColumns, kPanelColumns, part > 0});
          else
            block(ToBf16{static_cast<uint16_t*>(g.c) + r * g.ldc + n + j, g.ldc, columns - j,
                         part > 0 ? sums : nullptr, kPanelColumns});
        }
      }
    }
  }
}

#if RHEA_ISA < 3
// Rows and panels of bf16 as f32, then the product of these. Widening both costs about 2 % of the
// product of 256 rows by 8 panels; widened word by word between the multiply-adds it was 30 %.
void multiply_widened(const ops::RowsBlock& g) {
  const int64_t row = ops::f32_row(g.k), steps = (g.k + 1) / 2;
  float* rows = reinterpret_cast<float*>(g.scratch) + g.rows * kPanelColumns;
  auto* panel = reinterpret_cast<uint32_t*>(rows + g.rows * row);
  for (int64_t r = 0; r < g.rows; ++r) {
    const auto* from = reinterpret_cast<const uint16_t*>(g.a + r * g.a_stride);
    for (int64_t k = 0; k < g.k; k += kLanes)
      store(rows + r * row + k,
            g.k - k < kLanes ? load_bf16_n(from + k, g.k - k) : load_bf16(from + k));
  }
  for (int64_t n = 0; n < g.columns; n += kPanelColumns) {
    const char* pairs = g.panels + n / kPanelColumns * g.panel_bytes;
    widen_panel(reinterpret_cast<const uint32_t*>(pairs), steps, panel);
    ops::RowsBlock one = g;
    one.a = reinterpret_cast<const char*>(rows);
    one.a_stride = row * 4;
    one.panels = reinterpret_cast<const char*>(panel);
    one.columns = g.columns - n < kPanelColumns ? g.columns - n : kPanelColumns;
    one.c = static_cast<char*>(g.c) + n * (g.bf16_result ? 2 : 4);
    one.next = pairs + g.panel_bytes;
    one.next_stride = kPanelColumns * 4;
    one.next_rows = n + kPanelColumns < g.columns ? steps : 0;
    multiply_rows<F32Words>(one);
  }
}
#endif

template <class Words, Stores kStores>
void pack_strips(const char* src, int64_t stride, int64_t columns, int64_t k, uint32_t* strips) {
  const int64_t steps = (k + Words::kPair - 1) / Words::kPair;
  const PackedWords dst{strips, kStripRows, ops::strip_words(steps)};
  if constexpr (Words::kPair == 1)
    copy_rows<ops::kRowsPerStrip, kStores>(reinterpret_cast<const float*>(src), stride / 4, columns,
                                           k, dst);
  else
    interleave_rows<ops::kRowsPerStrip, kStores>(reinterpret_cast<const uint16_t*>(src), stride / 2,
                                                 columns, k, dst);
  finish_stores<kStores>();
}
template <Stores kStores>
void pack_wide_strips(const char* src, int64_t stride, int64_t columns, int64_t k,
                      uint32_t* strips) {
  copy_rows<ops::kRowsPerStrip, kStores>(reinterpret_cast<const uint16_t*>(src), stride / 2,
                                         columns, k, {strips, kStripRows, ops::strip_words(k)});
  finish_stores<kStores>();
}

// What stays in L2 is passed by first; the operand that passes comes from the shared cache and is
// fetched a few lines per block: the panel's next half while the rows of this one are done, or the
// next strip while the columns of this one are. Worth 3 to 6 points of the peak.
template <class Words>
Ahead next_operand(const ops::StripBlock& g, int64_t steps, int64_t r, int64_t n) {
  constexpr int64_t kColumns = kVectorsInStrip * kVector;
  if (g.stay_on_rows) {
    const int64_t next = r / kStripRows * kStripRows + kStripRows;
    if (next >= g.rows) return nothing_ahead(g.strips);
    const int64_t across = (g.columns + kColumns - 1) / kColumns,
                  parts = kStripRows / kRowsInStrip * across,
                  part = r % kStripRows / kRowsInStrip * across + n / kColumns;
    return {reinterpret_cast<const char*>(g.strips + next / kStripRows * ops::strip_words(steps) +
                                          part * (steps / parts) * kStripRows),
            2 * 64};
  }
  const int64_t next = n + kColumns;
  if (next >= g.columns) return nothing_ahead(g.panels);
  const int64_t parts = (g.rows + kRowsInStrip - 1) / kRowsInStrip, part = r / kRowsInStrip;
  return {g.panels + next / kPanelColumns * g.panel_bytes + next % kPanelColumns * 4 +
              part * (steps / parts) * kPanelColumns * 4,
          2 * kPanelColumns * 4, kPanelColumns * 4};
}

// Sums of squares in f64, in as many chains as a row of a tile has halves of vectors.
struct Squares {
  static constexpr int kChains = (kVectorsInStrip * kVector + kLanes - 1) / kLanes;
  f64x8 low[kChains] = {}, high[kChains] = {};

  __attribute__((always_inline)) void add(int chain, f32x16 x) {
    const f64x8 a = low_as_f64(x), b = high_as_f64(x);
    low[chain] += a * a;
    high[chain] += b * b;
  }
  __attribute__((always_inline)) double total() const {
    f64x8 sum = {};
    for (int i = 0; i < kChains; ++i) sum += low[i] + high[i];
    return sum_lanes(sum);
  }
};

// Adds the squares of a tile that was just written, so it comes from L1.
RHEA_INLINE void add_squares(const float* c, int64_t ldc, int64_t rows, int64_t columns,
                             Squares& sum) {
  if (rows == kRowsInStrip && columns == Squares::kChains * kLanes) {
    Squares now = sum;
#pragma GCC unroll 8
    for (int64_t i = 0; i < kRowsInStrip; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < Squares::kChains; ++j) now.add(j, load(c + i * ldc + j * kLanes));
    }
    sum = now;
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      const float* p = c + i * ldc + j;
      sum.add(static_cast<int>(j / kLanes),
              columns - j >= kLanes ? load(p) : load_n(p, columns - j));
    }
  }
}

template <class Words>
void multiply_strip(const ops::StripBlock& g) {
  constexpr int64_t kColumns = kVectorsInStrip * kVector;
  const int64_t steps = (g.k + Words::kPair - 1) / Words::kPair, strip = ops::strip_words(steps);
  const int64_t across = (g.columns + kColumns - 1) / kColumns,
                down = (g.rows + kRowsInStrip - 1) / kRowsInStrip;
  const auto row = [&](int64_t i) {
    return (g.stay_on_rows ? i / across : i % down) * kRowsInStrip;
  };
  const auto column = [&](int64_t i) {
    return (g.stay_on_rows ? i % across : i / down) * kColumns;
  };
  Squares squares;
  for (int64_t i = 0, blocks = across * down; i < blocks; ++i) {
    const int64_t r = row(i), n = column(i);
    if (i + 1 < blocks && row(i + 1) + kRowsInStrip <= g.rows)
      prefetch_tile(g.c + row(i + 1) * g.ldc + column(i + 1), g.ldc, kRowsInStrip, kColumns);
    const float* panel =
        reinterpret_cast<const float*>(g.panels + n / kPanelColumns * g.panel_bytes) +
        n % kPanelColumns;
    block_in_strip<Words, kRowsInStrip, kVectorsInStrip>(
        g.rows - r, steps, g.strips + r / kStripRows * strip + r % kStripRows, panel,
        g.c + r * g.ldc + n, g.ldc, g.columns - n, g.add, next_operand<Words>(g, steps, r, n));
    if (g.squares != nullptr)
      add_squares(g.c + r * g.ldc + n, g.ldc, g.rows - r < kRowsInStrip ? g.rows - r : kRowsInStrip,
                  g.columns - n < kColumns ? g.columns - n : kColumns, squares);
  }
  if (g.squares != nullptr) *g.squares = squares.total();
}

template <class Element, Stores kStores>
void pack_nk(const void* src, int64_t ld, int64_t columns, int64_t k, int64_t depth, void* panel) {
  pack_panel_nk<kStores>(static_cast<const Element*>(src), ld, columns, k, depth, panel);
  finish_stores<kStores>();
}
template <class Element, Stores kStores>
void pack_kn(const void* src, int64_t ld, int64_t columns, int64_t k, int64_t depth, void* panel) {
  pack_panel_kn<kStores>(static_cast<const Element*>(src), ld, columns, k, depth, panel);
  finish_stores<kStores>();
}

template <Stores kStores>
void pack_wide_nk(const void* src, int64_t ld, int64_t columns, int64_t k, int64_t depth,
                  void* panel) {
  pack_panel_nk<kStores, Pairs::widened>(static_cast<const uint16_t*>(src), ld, columns, k, depth,
                                         panel);
  finish_stores<kStores>();
}
template <Stores kStores>
void pack_wide_kn(const void* src, int64_t ld, int64_t columns, int64_t k, int64_t depth,
                  void* panel) {
  pack_panel_kn_f32<kStores>(static_cast<const uint16_t*>(src), ld, columns, k, depth, panel);
  finish_stores<kStores>();
}

template <Stores kStores>
constexpr ops::Packers packers() {
  return {
      {pack_nk<float, kStores>, pack_nk<uint16_t, kStores>, pack_wide_nk<kStores>},
      {pack_kn<float, kStores>, pack_kn<uint16_t, kStores>, pack_wide_kn<kStores>},
      {pack_strips<F32Words, kStores>, pack_strips<Bf16Words, kStores>, pack_wide_strips<kStores>}};
}

}  // namespace

extern const ops::PanelKernels kPanelKernels;
constexpr ops::PanelKernels kPanelKernels = {
    packers<Stores::cached>(),
    packers<Stores::streamed>(),
#if RHEA_ISA == 3
    {multiply_rows<F32Words>, multiply_rows<Bf16Words>},
    {multiply_strip<F32Words>, multiply_strip<Bf16Words>},
#else
    {multiply_rows<F32Words>, multiply_widened},
    {multiply_strip<F32Words>, nullptr},
#endif
};

}  // namespace rhea::RHEA_ISA_NAMESPACE
