// Tiled causal attention, compiled once per instruction set (rhea_kernel in CMakeLists.txt).
#include "rhea/ops/attention/tile_backward.h"
#include "rhea/ops/attention/tile_forward.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

// The kernel class as a value.
template <class Kernel>
struct Tag {
  using Type = Kernel;
};

#if RHEA_ISA >= 2
// The width of q, k and v after padding if it has a kernel of its own, else 0.
int64_t known_width(const ops::AttentionTiles& tiles) {
  const int64_t width = round_up_to(tiles.width, ops::kTileColumns);
  if (width != round_up_to(tiles.value_width, ops::kTileColumns) || tiles.softcap > 0 ||
      tiles.has_bias)
    return 0;
  return width == 16 || width == 64 || width == 128 ? width : 0;
}
#endif

template <class E, class F>
int64_t with_forward(const ops::AttentionTiles& tiles, F&& f) {
#if RHEA_ISA >= 2
  switch (known_width(tiles)) {
    case 16:
      return f(Tag<Forward<E, false, false, 16, 128, 256>>{});
    case 64:
      return f(Tag<Forward<E, false, false, 64, 128, 256>>{});
    case 128:
      return f(Tag<Forward<E, false, false, 128, 64, 128>>{});
  }
#endif
  if (tiles.softcap > 0) return f(Tag<Forward<E, true, false, 0, 64, 128>>{});
  if (tiles.has_bias) return f(Tag<Forward<E, false, true, 0, 64, 128>>{});
  return f(Tag<Forward<E, false, false, 0, 64, 128>>{});
}
template <class E, class F>
int64_t with_backward(const ops::AttentionTiles& tiles, F&& f) {
#if RHEA_ISA >= 2
  switch (known_width(tiles)) {
    case 16:
      return f(Tag<Backward<E, false, false, 16>>{});
    case 64:
      return f(Tag<Backward<E, false, false, 64>>{});
    case 128:
      return f(Tag<Backward<E, false, false, 128>>{});
  }
#endif
  if (tiles.softcap > 0) return f(Tag<Backward<E, true, false, 0>>{});
  if (tiles.has_bias) return f(Tag<Backward<E, false, true, 0>>{});
  return f(Tag<Backward<E, false, false, 0>>{});
}

// AVX-512 with bf16 instructions has kernels for bf16 only; f32 runs on the AVX-512 ones.
template <class F>
int64_t forward(const ops::AttentionTiles& tiles, F&& f) {
#if RHEA_ISA < 3
  if (!tiles.is_bf16) return with_forward<float>(tiles, f);
#endif
  return with_forward<uint16_t>(tiles, f);
}
template <class F>
int64_t backward(const ops::AttentionTiles& tiles, F&& f) {
#if RHEA_ISA < 3
  if (!tiles.is_bf16) return with_backward<float>(tiles, f);
#endif
  return with_backward<uint16_t>(tiles, f);
}

template <class Kernel>
int64_t run(const ops::AttentionTiles& tiles, int64_t begin, int64_t end) {
  Carver scratch{static_cast<float*>(tiles.scratch)};
  Kernel kernel(tiles, scratch);
  for (int64_t item = begin; item < end; ++item) kernel.run(item);
  return 0;
}

}  // namespace

void attention_forward(const ops::AttentionTiles& tiles, int64_t begin, int64_t end) {
  forward(tiles, [&](auto tag) { return run<typename decltype(tag)::Type>(tiles, begin, end); });
}
void attention_backward(const ops::AttentionTiles& tiles, int64_t begin, int64_t end) {
  backward(tiles, [&](auto tag) { return run<typename decltype(tag)::Type>(tiles, begin, end); });
}
int64_t attention_forward_scratch(const ops::AttentionTiles& tiles) {
  return 4 * forward(tiles, [&](auto tag) { return decltype(tag)::Type::scratch_floats(tiles); });
}
int64_t attention_backward_scratch(const ops::AttentionTiles& tiles) {
  return 4 * backward(tiles, [&](auto tag) { return decltype(tag)::Type::scratch_floats(tiles); });
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
