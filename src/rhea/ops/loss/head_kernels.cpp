#include "rhea/ops/loss/head_kernels.h"

#include "rhea/ops/dot_general/micro.h"
#include "rhea/ops/pack/pack_panel.h"
#include "rhea/ops/simd_math.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

using ops::HeadChunk;
using ops::kForwardWords;

constexpr int64_t kTokens = kPanelColumns;  // of a tile of logits
constexpr int32_t kIgnored = -100;

RHEA_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// How elements of a product lie in memory.
template <class Words>
struct Memory;
template <>
struct Memory<F32Words> {
  using Element = float;
  RHEA_INLINE f32x16 get(const void* p) { return load(static_cast<const float*>(p)); }
  RHEA_INLINE void put(void* p, f32x16 x) { store(static_cast<float*>(p), x); }
};
template <>
struct Memory<Bf16Words> {
  using Element = uint16_t;
  RHEA_INLINE f32x16 get(const void* p) { return load_bf16(p); }
  RHEA_INLINE void put(void* p, f32x16 x) {
#if RHEA_ISA == 3
    store_u16(p, bits_as<u16x16>(_mm512_cvtneps_pbh(bits_as<__m512>(x))));
#else
    store_bf16(p, x);
#endif
  }
};
template <class Words>
using Element = typename Memory<Words>::Element;

// e^x for x <= 0.
RHEA_INLINE f32x16 exp_below_zero(f32x16 x) {
#if RHEA_ISA >= 2
  // 2^t with the instructions that split and join exponents: half the work of exp(). Relative error
  // 1e-7 (1 + |x|).
  const __m512 t = _mm512_max_ps(_mm512_set1_ps(-150.0f), bits_as<__m512>(x * 1.44269504f));
  const __m512 n = _mm512_roundscale_ps(t, 8);
  const f32x16 r = bits_as<f32x16>(_mm512_sub_ps(t, n));
  f32x16 p = fma(splat(1.559873507e-04f), r, 1.340818443e-03f);
  p = fma(p, r, 9.617674331e-03f);
  p = fma(p, r, 5.550306272e-02f);
  p = fma(p, r, 2.402265292e-01f);
  p = fma(p, r, 6.931472172e-01f);
  p = fma(p, r, 1.0f);
  return bits_as<f32x16>(_mm512_scalef_ps(bits_as<__m512>(p), n));
#else
  return exp(x);
#endif
}

template <class Words>
void pack(const HeadChunk& c, int64_t item) {
  const auto* h = reinterpret_cast<const Element<Words>*>(c.h);
  const int64_t token_panels = c.chunk / kTokens;
  constexpr int64_t kUnit = 16 * Words::kPair;
  if (item < token_panels) {
    const int64_t t = item * kTokens, columns = c.count - t < 0 ? 0 : smaller(kTokens, c.count - t);
    pack_panel_nk(h + t * c.h_row, c.h_row, columns, c.width, (c.width + kUnit - 1) / kUnit * kUnit,
                  c.h_nk + item * c.nk_panel);
  } else {
    const int64_t panel = item - token_panels, d = panel * kPanelColumns;
    pack_panel_kn(h + d, c.h_row, smaller(kPanelColumns, c.width - d), c.count, c.chunk,
                  c.h_kn + panel * c.kn_panel);
  }
}

// Logits of a block of words for 64 tokens: tile[word][token].
template <class Words>
RHEA_INLINE void logits_tile(const HeadChunk& c, int64_t v0, int64_t words, int64_t panel,
                             float* tile) {
  const int64_t stride = c.w_row * static_cast<int64_t>(sizeof(Element<Words>));
  const char* w = c.w + v0 * stride;
  const float* h = reinterpret_cast<const float*>(c.h_nk + panel * c.nk_panel);
  // The words of the next block come towards the core in equal slices, while this one is multiplied
  // with all panels of tokens: 4 % of the forward product.
  const bool has_next = v0 + 2 * words <= c.vocabulary;
  const int64_t slice = has_next ? kRowsInPlace * stride / (c.chunk / kTokens) : 0;
  const char* next = w + words * stride + panel * (words / kRowsInPlace) * slice;
  for (int64_t j = 0; j < kTokens; j += kVectorsInPlace * kVector) {
    for (int64_t r = 0; r < words; r += kRowsInPlace) {
      if (j == 0) {
        for (int64_t k = 0; k < slice; k += 64) __builtin_prefetch(next + k, 0, 2);
        next += slice;
      }
      rows_in_place<Words, kRowsInPlace, kVectorsInPlace>(
          smaller(kRowsInPlace, words - r), c.width / Words::kPair, c.width % Words::kPair != 0,
          w + r * stride, stride, h + j, tile + r * kTokens + j, kTokens, kTokens, false);
    }
  }
}

// What follows the product: bias, then cap.
RHEA_INLINE void finish_logits(const HeadChunk& c, int64_t v0, int64_t words, float* tile) {
  const float inverse = c.cap > 0 ? 1.0f / c.cap : 0.0f;
  for (int64_t r = 0; r < words; ++r) {
    const float bias = c.bias == nullptr ? 0.0f : c.bias[v0 + r];
    for (int64_t t = r * kTokens; t < (r + 1) * kTokens; t += kLanes) {
      const f32x16 x = load(tile + t) + bias;
      store(tile + t, c.cap > 0 ? c.cap * tanh(x * inverse) : x);
    }
  }
}

// d logit / d product, from the logit: 1 - tanh^2.
template <class T>
RHEA_INLINE T slope_of_cap(T logit, float inverse_cap) {
  const T u = logit * inverse_cap;
  return 1.0f - u * u;
}

template <class Words>
void forward(const HeadChunk& c, int64_t block) {
  constexpr int64_t kElement = sizeof(Element<Words>);
  const int64_t v0 = block * kForwardWords, words = smaller(kForwardWords, c.vocabulary - v0);
  float* tile = reinterpret_cast<float*>(c.scratch);
  const bool capped = c.cap > 0;
  const float inverse_cap = capped ? 1.0f / c.cap : 0.0f;
  for (int64_t t0 = 0; t0 < c.chunk; t0 += kTokens) {
    logits_tile<Words>(c, v0, words, t0 / kTokens, tile);
    if (c.bias != nullptr || capped) finish_logits(c, v0, words, tile);
    for (int64_t t = t0; t < smaller(t0 + kTokens, c.count); ++t) {
      const int64_t label = c.labels[t] - v0;
      if (label >= 0 && label < words) c.label_logits[t] = tile[label * kTokens + t - t0];
    }
    for (int64_t t = 0; t < kTokens; t += kLanes) {
      // A NaN that the maximum passes over reaches the sum.
      f32x16 max = load(tile + t);
      for (int64_t r = 1; r < words; ++r) {
        const f32x16 x = load(tile + r * kTokens + t);
        max = select(x > max, x, max);
      }
      const int64_t at = block * c.chunk + t0 + t;
      store(c.maxima + at, max);
      f32x16 sum = {};
      char* exps = c.exps == nullptr
                       ? nullptr
                       : c.exps + (v0 * ops::exps_row(c.chunk, kElement) + t0 + t) * kElement;
      for (int64_t r = 0; r < words; ++r) {
        const f32x16 x = load(tile + r * kTokens + t), e = exp_below_zero(x - max);
        sum += e;
        if (exps != nullptr)
          Memory<Words>::put(exps + r * ops::exps_row(c.chunk, kElement) * kElement,
                             capped ? e * slope_of_cap(x, inverse_cap) : e);
      }
      store(c.sums + at, sum);
    }
  }
}

void normalise(const HeadChunk& c, int64_t item) {
  const int64_t t = item * ops::kTokensPerItem,
                blocks = (c.vocabulary + kForwardWords - 1) / kForwardWords;
  f32x16 max = load(c.maxima + t);
  for (int64_t b = 1; b < blocks; ++b) {
    const f32x16 x = load(c.maxima + b * c.chunk + t);
    max = select(x > max, x, max);
  }
  f32x16 sum = {};
  for (int64_t b = 0; b < blocks; ++b)
    sum = fma(load(c.sums + b * c.chunk + t), exp(load(c.maxima + b * c.chunk + t) - max), sum);
  f32x16 factor = {};
  for (int64_t i = 0; i < kLanes; ++i) {
    const bool real = t + i < c.count;
    const int32_t label = real ? c.labels[t + i] : kIgnored;
    if (label == kIgnored) {
      if (real) c.losses[t + i] = 0;
      continue;
    }
    const bool known = label >= 0 && label < c.vocabulary;
    const double loss = static_cast<double>(max[i]) + __builtin_log(static_cast<double>(sum[i])) -
                        static_cast<double>(known ? c.label_logits[t + i] : __builtin_nanf(""));
    c.losses[t + i] = loss;
    factor[i] = c.grad / sum[i];
  }
  if (c.exps == nullptr) return;
  for (int64_t b = 0; b < blocks; ++b) {
    float* p = c.maxima + b * c.chunk + t;
    store(p, factor * exp(load(p) - max));
  }
}

// Puts the gradients of one word, or of a pair of words, for 16 tokens: in place of exp, and once
// more into a strip for dh. `second` is where the second word goes, null without one.
RHEA_INLINE void put_gradients(F32Words, char* first, char*, uint32_t* strip, f32x16 x, f32x16) {
  store(reinterpret_cast<float*>(first), x);
  store(reinterpret_cast<float*>(strip), x);
}
RHEA_INLINE void put_gradients(Bf16Words, char* first, char* second, uint32_t* strip, f32x16 x,
                               f32x16 next) {
#if RHEA_ISA == 3
  const __m512i both =
      bits_as<__m512i>(_mm512_cvtne2ps_pbh(bits_as<__m512>(next), bits_as<__m512>(x)));
  const __m512i pairs = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(first), _mm512_castsi512_si256(both));
  if (second != nullptr)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(second), _mm512_extracti64x4_epi64(both, 1));
  _mm512_storeu_si512(strip, _mm512_permutexvar_epi16(pairs, both));
#else
  const u32x16 low = bf16_bits_of(x), high = bf16_bits_of(next), words = low | (high << 16);
  store_u16(first, __builtin_convertvector(low, u16x16));
  if (second != nullptr) store_u16(second, __builtin_convertvector(high, u16x16));
  __builtin_memcpy(strip, &words, 64);
#endif
}
template <class Words>
RHEA_INLINE void gradient_of_logits(const HeadChunk& c, int64_t v0, int64_t words, char* exps,
                                    uint32_t* strips, int64_t strip) {
  constexpr int64_t kElement = sizeof(Element<Words>);
  const int64_t row = ops::exps_row(c.chunk, kElement) * kElement;
  for (int64_t r = 0; r < words; r += Words::kPair) {
    const float* factor = c.maxima + (v0 + r) / kForwardWords * c.chunk;
    for (int64_t t = 0; t < c.chunk; t += kLanes) {
      const f32x16 f = load(factor + t);
      char* first = exps + r * row + t * kElement;
      char* second = Words::kPair == 2 && r + 1 < words ? first + row : nullptr;
      const f32x16 x = Memory<Words>::get(first) * f;
      const f32x16 next = second == nullptr ? f32x16{} : Memory<Words>::get(second) * f;
      put_gradients(Words{}, first, second,
                    strips + t / kStripRows * strip + r / Words::kPair * kStripRows, x, next);
    }
  }
  for (int64_t t = 0; t < c.count; ++t) {
    const int64_t r = c.labels[t] - v0;
    if (r < 0 || r >= words) continue;
    // From the f32 logit: exp(-loss) is the probability of the label.
    const float slope = c.cap > 0 ? slope_of_cap(c.label_logits[t], 1.0f / c.cap) : 1.0f;
    const float x = c.grad * static_cast<float>(__builtin_exp(-c.losses[t]) - 1.0) * slope;
    uint32_t* word =
        strips + t / kStripRows * strip + r / Words::kPair * kStripRows + t % kStripRows;
    if constexpr (Words::kPair == 1) {
      __builtin_memcpy(exps + r * row + t * kElement, &x, 4);
      __builtin_memcpy(word, &x, 4);
    } else {
      const uint16_t bits = f32_to_bf16(splat(x))[0];
      __builtin_memcpy(exps + r * row + t * kElement, &bits, 2);
      __builtin_memcpy(reinterpret_cast<char*>(word) + r % 2 * 2, &bits, 2);
    }
  }
}

// dbias of a block of words: their gradients over the tokens.
template <class Words>
RHEA_INLINE void gradient_of_bias(const HeadChunk& c, int64_t v0, int64_t words, const char* exps) {
  constexpr int64_t kElement = sizeof(Element<Words>);
  for (int64_t r = 0; r < words; ++r) {
    const char* row = exps + r * ops::exps_row(c.chunk, kElement) * kElement;
    f32x16 sum = {};
    for (int64_t t = 0; t < c.chunk; t += kLanes) sum += Memory<Words>::get(row + t * kElement);
    const float total = sum_lanes(sum);
    c.dbias[v0 + r] = c.first ? total : c.dbias[v0 + r] + total;
  }
}

template <class Words>
RHEA_INLINE void backward_block(const HeadChunk& c, int64_t v0, int64_t words, bool first,
                                float* partial) {
  constexpr int64_t kElement = sizeof(Element<Words>);
  constexpr int64_t kUnit = 16 * Words::kPair;
  const int64_t steps = (words + Words::kPair - 1) / Words::kPair;
  const int64_t strip = steps * kStripRows, row = ops::exps_row(c.chunk, kElement) * kElement;
  const int64_t depth = (words + kUnit - 1) / kUnit * kUnit,
                panel = depth * kPanelColumns * kElement;
  char* exps = c.exps + v0 * row;
  auto* strips = reinterpret_cast<uint32_t*>(c.scratch);
  char* w_panels = c.scratch + ops::backward_words(kElement) * c.chunk * kElement;
  gradient_of_logits<Words>(c, v0, words, exps, strips, strip);
  if (c.dbias != nullptr) gradient_of_bias<Words>(c, v0, words, exps);
  const auto* w = reinterpret_cast<const Element<Words>*>(c.w) + v0 * c.w_row;
  for (int64_t d = 0; d < c.width; d += kPanelColumns)
    pack_panel_kn(w + d, c.w_row, smaller(kPanelColumns, c.width - d), words, depth,
                  w_panels + d / kPanelColumns * panel);

  // Two loops and not one: the strips and the rows in place would push one another out of L2.
  const int64_t ldp = ops::partial_row(c.width);
  for (int64_t d = 0; d < c.width; d += kVectorsInStrip * kVector) {
    const float* b =
        reinterpret_cast<const float*>(w_panels + d / kPanelColumns * panel) + d % kPanelColumns;
    for (int64_t t = 0; t < c.chunk; t += kRowsInStrip) {
      float* sum = partial + t * ldp + d;
      if (t + kRowsInStrip < c.chunk)
        prefetch_tile(sum + kRowsInStrip * ldp, ldp, kRowsInStrip, kVectorsInStrip * kVector);
      block_in_strip<Words, kRowsInStrip, kVectorsInStrip>(
          kRowsInStrip, steps, strips + t / kStripRows * strip + t % kStripRows, b, sum, ldp,
          c.width - d, !first);
    }
  }
  for (int64_t d = 0; d < c.width; d += kVectorsInPlace * kVector) {
    const float* b =
        reinterpret_cast<const float*>(c.h_kn + d / kPanelColumns * c.kn_panel) + d % kPanelColumns;
    for (int64_t r = 0; r < words; r += kRowsInPlace) {
      float* dw = c.dw + (v0 + r) * c.dw_row + d;
      if (r + 2 * kRowsInPlace <= words)
        prefetch_tile(dw + kRowsInPlace * c.dw_row, c.dw_row, kRowsInPlace,
                      kVectorsInPlace * kVector);
      rows_in_place<Words, kRowsInPlace, kVectorsInPlace>(
          smaller(kRowsInPlace, words - r), c.chunk / Words::kPair, false, exps + r * row, row, b,
          dw, c.dw_row, c.width - d, !c.first);
    }
  }
}

template <class Words>
void backward(const HeadChunk& c, int64_t group) {
  constexpr int64_t kWords = ops::backward_words(sizeof(Element<Words>));
  const int64_t blocks = (c.vocabulary + kWords - 1) / kWords;
  const int64_t begin = blocks * group / ops::kHeadGroups,
                end = blocks * (group + 1) / ops::kHeadGroups;
  float* partial = c.partial + group * c.chunk * ops::partial_row(c.width);
  for (int64_t block = begin; block < end; ++block)
    backward_block<Words>(c, block * kWords, smaller(kWords, c.vocabulary - block * kWords),
                          block == begin, partial);
}

template <class Words>
void finish(const HeadChunk& c, int64_t item) {
  constexpr int64_t kElement = sizeof(Element<Words>);
  const int64_t blocks =
      (c.vocabulary + ops::backward_words(kElement) - 1) / ops::backward_words(kElement);
  const int64_t ldp = ops::partial_row(c.width),
                end = smaller(c.count, (item + 1) * ops::kTokensPerItem);
  for (int64_t t = item * ops::kTokensPerItem; t < end; ++t) {
    for (int64_t d = 0; d < c.width; d += kLanes) {
      f32x16 sum = {};
      for (int64_t g = 0; g < ops::kHeadGroups; ++g) {
        // A group without blocks has written nothing.
        if (blocks * g / ops::kHeadGroups == blocks * (g + 1) / ops::kHeadGroups) continue;
        sum += load(c.partial + (g * c.chunk + t) * ldp + d);
      }
      char* dh = c.dh + (t * c.dh_row + d) * kElement;
      if constexpr (Words::kPair == 1)
        store_n(reinterpret_cast<float*>(dh), sum, c.width - d);
      else
        store_bf16_n(dh, sum, c.width - d);
    }
  }
}

}  // namespace

extern const ops::HeadKernels kHeadKernels;
constexpr ops::HeadKernels kHeadKernels = {{pack<F32Words>, pack<Bf16Words>},
                                           {forward<F32Words>, forward<Bf16Words>},
                                           normalise,
                                           {backward<F32Words>, backward<Bf16Words>},
                                           {finish<F32Words>, finish<Bf16Words>}};

}  // namespace rhea::RHEA_ISA_NAMESPACE
