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
        const char* a = g.a + r * g.a_stride + from * 4;
        for (int64_t j = 0; j < columns; j += kColumns) {
          const auto block = [&](const auto& write) {
            rows_in_place<Words, kRowsInPlace, kVectorsInPlace>(
                rows, to - from, odd && last, a, g.a_stride, panel + from * kPanelColumns + j,
                write);
          };
          float* sums = g.scratch + r * kPanelColumns + j;
          if (!g.bf16_result)  // an f32 result is its own place for partial sums
            block(
                ToF32{static_cast<float*>(g.c) + r * g.ldc + n + j, g.ldc, columns - j, part > 0});
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

// 64 columns of the stored left operand as four strips.
RHEA_INLINE void pack_strips(F32Words, const char* src, int64_t ld, int64_t columns, int64_t k,
                             PackedWords dst) {
  copy_rows<ops::kRowsPerStrip>(reinterpret_cast<const float*>(src), ld / 4, columns, k, dst);
}
RHEA_INLINE void pack_strips(Bf16Words, const char* src, int64_t ld, int64_t columns, int64_t k,
                             PackedWords dst) {
  interleave_rows<ops::kRowsPerStrip>(reinterpret_cast<const uint16_t*>(src), ld / 2, columns, k,
                                      dst);
}

template <class Words>
void multiply_strip(const ops::StripBlock& g) {
  constexpr int kColumns = kVectorsInStrip * kVector;
  const int64_t steps = (g.k + Words::kPair - 1) / Words::kPair;
  // A cache line more than the strip: strips a power of two apart would meet in few sets.
  const int64_t strip = steps * kStripRows + 64;
  pack_strips(Words{}, g.a, g.a_stride, g.rows, g.k, {g.scratch, kStripRows, strip});
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
          rows, steps, g.scratch + r / kStripRows * strip + r % kStripRows, panel, c, g.ldc,
          g.columns - n, g.add);
    }
  }
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

}  // namespace

extern const ops::PanelKernels kPanelKernels;
constexpr ops::PanelKernels kPanelKernels = {
    {pack_nk<float, Stores::cached>, pack_nk<uint16_t, Stores::cached>},
    {pack_kn<float, Stores::cached>, pack_kn<uint16_t, Stores::cached>},
    {pack_nk<float, Stores::streamed>, pack_nk<uint16_t, Stores::streamed>},
    {pack_kn<float, Stores::streamed>, pack_kn<uint16_t, Stores::streamed>},
    {multiply_rows<F32Words>, multiply_rows<Bf16Words>},
    {multiply_strip<F32Words>, multiply_strip<Bf16Words>}};

}  // namespace rhea::RHEA_ISA_NAMESPACE
