// Tiled causal attention, compiled once per instruction set (rhea_kernel in CMakeLists.txt).
#include "rhea/ops/attention/tile_backward.h"
#include "rhea/ops/attention/tile_forward.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

// Calls f with the kernel class as a tag: element type, soft cap, and blocks by head width.
template <class Kernel>
struct Tag {
  using Type = Kernel;
};

template <class E, class F>
int64_t with_forward(const ops::AttentionTiles& tiles, F&& f) {
  const bool wide = tiles.width > 64 || tiles.value_width > 64;
  if (tiles.softcap > 0) return f(Tag<Forward<E, true, 64, 128>>{});
  if (wide) return f(Tag<Forward<E, false, 64, 128>>{});
  return f(Tag<Forward<E, false, 128, 256>>{});
}
template <class E, class F>
int64_t with_backward(const ops::AttentionTiles& tiles, F&& f) {
  if (tiles.softcap > 0) return f(Tag<Backward<E, true>>{});
  return f(Tag<Backward<E, false>>{});
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
