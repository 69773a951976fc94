#include "rhea/ops/dot_general/panel_kernels.h"

#include "rhea/ops/dot_general/micro.h"
#include "rhea/ops/pack/pack_panel.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

// A longer panel (64 columns by 4 bytes by steps) would leave L2 while the rows pass by it; the
// reduction is cut into equal parts.
constexpr int64_t kPartSteps = 1536;

template <class Words>
void multiply_rows(const ops::RowsBlock& g) {
  constexpr int kColumns = kVectorsInPlace * kVector;
  const int64_t steps = g.k / Words::kPair;
  const bool odd = g.k % Words::kPair != 0;
  const int64_t parts = steps <= kPartSteps ? 1 : (steps + kPartSteps - 1) / kPartSteps;
  for (int64_t n = 0; n < g.columns; n += kPanelColumns) {
    const float* panel =
        reinterpret_cast<const float*>(g.panels + n / kPanelColumns * g.panel_bytes);
    const int64_t columns = g.columns - n < kPanelColumns ? g.columns - n : kPanelColumns;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t from = steps * part / parts, to = steps * (part + 1) / parts;
      const bool last = part + 1 == parts;
      for (int64_t r = 0; r < g.rows; r += kRowsInPlace) {
        const int64_t rows = g.rows - r < kRowsInPlace ? g.rows - r : kRowsInPlace;
        // An f32 result is its own place for partial sums.
        float* sums = g.bf16_result ? g.scratch + (parts == 1 ? 0 : r * kPanelColumns)
                                    : static_cast<float*>(g.c) + r * g.ldc + n;
        const int64_t ld_sums = g.bf16_result ? kPanelColumns : g.ldc;
        for (int64_t j = 0; j < columns; j += kColumns)
          rows_in_place<Words, kRowsInPlace, kVectorsInPlace>(
              rows, to - from, odd && last, g.a + r * g.a_stride + from * 4, g.a_stride,
              panel + from * kPanelColumns + j, sums + j, ld_sums,
              g.bf16_result ? kPanelColumns : columns - j, part > 0);
        if (!g.bf16_result || !last) continue;
        for (int64_t i = 0; i < rows; ++i) {
          uint16_t* c = static_cast<uint16_t*>(g.c) + (r + i) * g.ldc + n;
          for (int64_t j = 0; j < columns; j += kLanes) {
            const f32x16 x = load(sums + i * kPanelColumns + j);
            columns - j >= kLanes ? store_bf16(c + j, x) : store_bf16_n(c + j, x, columns - j);
          }
        }
      }
    }
  }
}

RHEA_INLINE void pack_strip(F32Words, const char* src, int64_t ld, int64_t columns, int64_t k,
                            uint32_t* dst) {
  copy_rows<kStripRows>(reinterpret_cast<const float*>(src), ld / 4, columns, k,
                        reinterpret_cast<float*>(dst));
}
RHEA_INLINE void pack_strip(Bf16Words, const char* src, int64_t ld, int64_t columns, int64_t k,
                            uint32_t* dst) {
  interleave_rows<kStripRows>(reinterpret_cast<const uint16_t*>(src), ld / 2, columns, k, dst);
}

template <class Words>
void multiply_strip(const ops::StripBlock& g) {
  constexpr int kColumns = kVectorsInStrip * kVector;
  constexpr int64_t kElement = 4 / Words::kPair;
  const int64_t steps = (g.k + Words::kPair - 1) / Words::kPair;
  for (int64_t r = 0; r < g.rows; r += kStripRows)
    pack_strip(Words{}, g.a + r * kElement, g.a_stride, g.rows - r, g.k, g.scratch + r * steps);
  // The columns of a panel pass by the whole strip, which stays in L2.
  for (int64_t n = 0; n < g.columns; n += kColumns) {
    const float* panel =
        reinterpret_cast<const float*>(g.panels + n / kPanelColumns * g.panel_bytes) +
        n % kPanelColumns;
    for (int64_t r = 0; r < g.rows; r += kRowsInStrip) {
      float* c = g.c + r * g.ldc + n;
      const int64_t rows = g.rows - r < kRowsInStrip ? g.rows - r : kRowsInStrip;
      if (r + 2 * kRowsInStrip <= g.rows)
        prefetch_tile(c + kRowsInStrip * g.ldc, g.ldc, kRowsInStrip, kColumns);
      block_in_strip<Words, kRowsInStrip, kVectorsInStrip>(
          rows, steps, g.scratch + r / kStripRows * kStripRows * steps + r % kStripRows, panel, c,
          g.ldc, g.columns - n, g.add);
    }
  }
}

template <class Element>
void pack_nk(const void* src, int64_t ld, int64_t columns, int64_t k, int64_t depth, void* panel) {
  pack_panel_nk(static_cast<const Element*>(src), ld, columns, k, depth, panel);
}
template <class Element>
void pack_kn(const void* src, int64_t ld, int64_t columns, int64_t k, int64_t depth, void* panel) {
  pack_panel_kn(static_cast<const Element*>(src), ld, columns, k, depth, panel);
}

}  // namespace

extern const ops::PanelKernels kPanelKernels;
constexpr ops::PanelKernels kPanelKernels = {{pack_nk<float>, pack_nk<uint16_t>},
                                             {pack_kn<float>, pack_kn<uint16_t>},
                                             {multiply_rows<F32Words>, multiply_rows<Bf16Words>},
                                             {multiply_strip<F32Words>, multiply_strip<Bf16Words>}};

}  // namespace rhea::RHEA_ISA_NAMESPACE
