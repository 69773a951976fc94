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

// The types of h and w: what lies in memory, and the words that are multiplied.
struct F32 {
  using Element = float;
  using Words = F32Words;
  RHEA_INLINE f32x16 get(const void* p) { return load(static_cast<const float*>(p)); }
  RHEA_INLINE void put(void* p, f32x16 x) { store(static_cast<float*>(p), x); }
};
struct Bf16 {
  using Element = uint16_t;
  RHEA_INLINE f32x16 get(const void* p) { return load_bf16(p); }
#if RHEA_ISA == 3
  using Words = Bf16Words;
  RHEA_INLINE void put(void* p, f32x16 x) {
    store_u16(p, bits_as<u16x16>(_mm512_cvtneps_pbh(bits_as<__m512>(x))));
  }
#else
  using Words = F32Words;
  RHEA_INLINE void put(void* p, f32x16 x) { store_bf16(p, x); }
#endif
};
// Bytes of an element in memory and when multiplied.
template <class T>
constexpr int64_t kElement = sizeof(typename T::Element);
template <class T>
constexpr int64_t kMultiplied = 4 / T::Words::kPair;
template <class T>
constexpr bool kWidened = kElement<T> < kMultiplied<T>;
static_assert(kWidened<Bf16> == !multiplies_bf16(static_cast<Isa>(RHEA_ISA)));
// Of the reduction of a panel, in elements.
template <class T>
RHEA_INLINE int64_t padded_depth(int64_t k) {
  constexpr int64_t kUnit = 16 * T::Words::kPair;
  return (k + kUnit - 1) / kUnit * kUnit;
}

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

template <class T>
RHEA_INLINE void pack_kn(const typename T::Element* src, int64_t ld, int64_t columns, int64_t k,
                         int64_t depth, void* panel) {
  if constexpr (kWidened<T>)
    pack_panel_kn_f32(src, ld, columns, k, depth, panel);
  else
    pack_panel_kn(src, ld, columns, k, depth, panel);
}

template <class T>
void pack(const HeadChunk& c, int64_t item) {
  constexpr Pairs kPairs = kWidened<T> ? Pairs::widened : Pairs::kept;
  const auto* h = reinterpret_cast<const typename T::Element*>(c.h);
  const int64_t token_panels = c.chunk / kTokens;
  if (item < token_panels) {
    const int64_t t = item * kTokens, columns = c.count - t < 0 ? 0 : smaller(kTokens, c.count - t);
    pack_panel_nk<Stores::cached, kPairs>(h + t * c.h_row, c.h_row, columns, c.width,
                                          padded_depth<T>(c.width), c.h_nk + item * c.nk_panel);
  } else {
    const int64_t panel = item - token_panels, d = panel * kPanelColumns;
    pack_kn<T>(h + d, c.h_row, smaller(kPanelColumns, c.width - d), c.count, c.chunk,
               c.h_kn + panel * c.kn_panel);
  }
}

// Rows of words as they are multiplied in place, `stride` bytes apart.
struct Rows {
  char* at;
  int64_t stride;
};
template <class T>
RHEA_INLINE void widen_words(const HeadChunk& c, int64_t v0, int64_t words, Rows to) {
  const auto* w = reinterpret_cast<const typename T::Element*>(c.w) + v0 * c.w_row;
  for (int64_t r = 0; r < words; ++r, w += c.w_row, to.at += to.stride) {
    for (int64_t d = 0; d < c.width; d += kLanes)
      store(reinterpret_cast<float*>(to.at) + d, load_row(w + d, c.width - d));
  }
}

// Logits of a block of words for 64 tokens: tile[word][token].
template <class T>
RHEA_INLINE void logits_tile(const HeadChunk& c, int64_t v0, int64_t words, Rows w, int64_t panel,
                             float* tile) {
  using Words = typename T::Words;
  const float* h = reinterpret_cast<const float*>(c.h_nk + panel * c.nk_panel);
  // The words of the next block come towards the core in equal slices, while this one is multiplied
  // with all panels of tokens: 4 % of the forward product.
  const bool has_next = v0 + 2 * words <= c.vocabulary;
  const int64_t stride = c.w_row * kElement<T>;
  const int64_t slice = has_next ? kRowsInPlace * stride / (c.chunk / kTokens) : 0;
  const char* next = c.w + (v0 + words) * stride + panel * (words / kRowsInPlace) * slice;
  for (int64_t j = 0; j < kTokens; j += kVectorsInPlace * kVector) {
    for (int64_t r = 0; r < words; r += kRowsInPlace) {
      if (j == 0) {
        for (int64_t k = 0; k < slice; k += 64) __builtin_prefetch(next + k, 0, 2);
        next += slice;
      }
      rows_in_place<Words, kRowsInPlace, kVectorsInPlace>(
          smaller(kRowsInPlace, words - r), c.width / Words::kPair, c.width % Words::kPair != 0,
          w.at + r * w.stride, w.stride, h + j, tile + r * kTokens + j, kTokens, kTokens, false);
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

template <class T>
void forward(const HeadChunk& c, int64_t block) {
  const int64_t v0 = block * kForwardWords, words = smaller(kForwardWords, c.vocabulary - v0);
  float* tile = reinterpret_cast<float*>(c.scratch);
  Rows w = {const_cast<char*>(c.w) + v0 * c.w_row * kElement<T>, c.w_row * kElement<T>};
  if constexpr (kWidened<T>) {
    w = {c.scratch + kForwardWords * kTokens * 4, ops::f32_row(c.width) * 4};
    widen_words<T>(c, v0, words, w);
  }
  const bool capped = c.cap > 0;
  const float inverse_cap = capped ? 1.0f / c.cap : 0.0f;
  for (int64_t t0 = 0; t0 < c.chunk; t0 += kTokens) {
    logits_tile<T>(c, v0, words, w, t0 / kTokens, tile);
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
                       : c.exps + (v0 * ops::exps_row(c.chunk, kElement<T>) + t0 + t) * kElement<T>;
      for (int64_t r = 0; r < words; ++r) {
        const f32x16 x = load(tile + r * kTokens + t), e = exp_below_zero(x - max);
        sum += e;
        if (exps != nullptr)
          T::put(exps + r * ops::exps_row(c.chunk, kElement<T>) * kElement<T>,
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

// The gradients of the logits of a block: rows of words for dw, strips of tokens for dh, each
// `strip` words of 32 bits.
struct Gradients {
  Rows rows;
  uint32_t* strips;
  int64_t strip;
};

// Puts the gradients of one word, or of a pair of words, for 16 tokens: into their rows, and once
// more into a strip. `second` is where the second word goes, null without one.
RHEA_INLINE void put_gradients(F32Words, char* first, char*, uint32_t* strip, f32x16 x, f32x16) {
  store(reinterpret_cast<float*>(first), x);
  store(reinterpret_cast<float*>(strip), x);
}
#if RHEA_ISA == 3
RHEA_INLINE void put_gradients(Bf16Words, char* first, char* second, uint32_t* strip, f32x16 x,
                               f32x16 next) {
  const __m512i both =
      bits_as<__m512i>(_mm512_cvtne2ps_pbh(bits_as<__m512>(next), bits_as<__m512>(x)));
  const __m512i pairs = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(first), _mm512_castsi512_si256(both));
  if (second != nullptr)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(second), _mm512_extracti64x4_epi64(both, 1));
  _mm512_storeu_si512(strip, _mm512_permutexvar_epi16(pairs, both));
}
#endif
template <class T>
RHEA_INLINE void gradient_of_logits(const HeadChunk& c, int64_t v0, int64_t words, Rows exps,
                                    const Gradients& to) {
  using Words = typename T::Words;
  for (int64_t r = 0; r < words; r += Words::kPair) {
    const float* factor = c.maxima + (v0 + r) / kForwardWords * c.chunk;
    for (int64_t t = 0; t < c.chunk; t += kLanes) {
      const f32x16 f = load(factor + t);
      const bool has_second = Words::kPair == 2 && r + 1 < words;
      const char* exp = exps.at + r * exps.stride + t * kElement<T>;
      const f32x16 x = T::get(exp) * f;
      const f32x16 next = has_second ? T::get(exp + exps.stride) * f : f32x16{};
      char* first = to.rows.at + r * to.rows.stride + t * kMultiplied<T>;
      put_gradients(Words{}, first, has_second ? first + to.rows.stride : nullptr,
                    to.strips + t / kStripRows * to.strip + r / Words::kPair * kStripRows, x, next);
    }
  }
  for (int64_t t = 0; t < c.count; ++t) {
    const int64_t r = c.labels[t] - v0;
    if (r < 0 || r >= words) continue;
    // From the f32 logit: exp(-loss) is the probability of the label.
    const float slope = c.cap > 0 ? slope_of_cap(c.label_logits[t], 1.0f / c.cap) : 1.0f;
    const float x = c.grad * static_cast<float>(__builtin_exp(-c.losses[t]) - 1.0) * slope;
    char* row = to.rows.at + r * to.rows.stride + t * kMultiplied<T>;
    uint32_t* word =
        to.strips + t / kStripRows * to.strip + r / Words::kPair * kStripRows + t % kStripRows;
    if constexpr (Words::kPair == 1) {
      __builtin_memcpy(row, &x, 4);
      __builtin_memcpy(word, &x, 4);
    } else {
      const uint16_t bits = f32_to_bf16(splat(x))[0];
      __builtin_memcpy(row, &bits, 2);
      __builtin_memcpy(reinterpret_cast<char*>(word) + r % 2 * 2, &bits, 2);
    }
  }
}

// dbias of a block of words: their gradients over the tokens.
template <class Words>
RHEA_INLINE void gradient_of_bias(const HeadChunk& c, int64_t v0, int64_t words, Rows gradients) {
  for (int64_t r = 0; r < words; ++r) {
    const char* row = gradients.at + r * gradients.stride;
    f32x16 sum = {};
    for (int64_t t = 0; t < c.chunk; t += kLanes) {
      if constexpr (Words::kPair == 1)
        sum += F32::get(row + t * 4);
      else
        sum += Bf16::get(row + t * 2);
    }
    const float total = sum_lanes(sum);
    c.dbias[v0 + r] = c.first ? total : c.dbias[v0 + r] + total;
  }
}

template <class T>
RHEA_INLINE void backward_block(const HeadChunk& c, int64_t v0, int64_t words, bool first,
                                float* partial) {
  using Words = typename T::Words;
  constexpr int64_t kBlockWords = ops::backward_words(kMultiplied<T>);
  const int64_t steps = (words + Words::kPair - 1) / Words::kPair, strip = steps * kStripRows;
  const int64_t depth = padded_depth<T>(words), panel = depth * kPanelColumns * kMultiplied<T>;
  const int64_t panels = (c.width + kPanelColumns - 1) / kPanelColumns;
  auto* strips = reinterpret_cast<uint32_t*>(c.scratch);
  char* w_panels = c.scratch + kBlockWords * c.chunk * kMultiplied<T>;
  const int64_t exps_stride = ops::exps_row(c.chunk, kElement<T>) * kElement<T>;
  const Rows exps = {c.exps + v0 * exps_stride, exps_stride};
  const Gradients gradients = {
      kWidened<T> ? Rows{w_panels + panels * padded_depth<T>(kBlockWords) * kPanelColumns * 4,
                         ops::exps_row(c.chunk, 4) * 4}
                  : exps,
      strips, strip};
  gradient_of_logits<T>(c, v0, words, exps, gradients);
  if (c.dbias != nullptr) gradient_of_bias<Words>(c, v0, words, gradients.rows);
  const auto* w = reinterpret_cast<const typename T::Element*>(c.w) + v0 * c.w_row;
  for (int64_t d = 0; d < c.width; d += kPanelColumns)
    pack_kn<T>(w + d, c.w_row, smaller(kPanelColumns, c.width - d), words, depth,
               w_panels + d / kPanelColumns * panel);

  // Two loops and not one: the strips and the rows in place would push one another out of L2.
  const int64_t ldp = ops::f32_row(c.width);
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
          smaller(kRowsInPlace, words - r), c.chunk / Words::kPair, false,
          gradients.rows.at + r * gradients.rows.stride, gradients.rows.stride, b, dw, c.dw_row,
          c.width - d, !c.first);
    }
  }
}

template <class T>
void backward(const HeadChunk& c, int64_t group) {
  constexpr int64_t kWords = ops::backward_words(kMultiplied<T>);
  const int64_t blocks = (c.vocabulary + kWords - 1) / kWords;
  const int64_t begin = blocks * group / ops::kHeadGroups,
                end = blocks * (group + 1) / ops::kHeadGroups;
  float* partial = c.partial + group * c.chunk * ops::f32_row(c.width);
  for (int64_t block = begin; block < end; ++block)
    backward_block<T>(c, block * kWords, smaller(kWords, c.vocabulary - block * kWords),
                      block == begin, partial);
}

template <class T>
void finish(const HeadChunk& c, int64_t item) {
  constexpr int64_t kWords = ops::backward_words(kMultiplied<T>);
  const int64_t blocks = (c.vocabulary + kWords - 1) / kWords;
  const int64_t ldp = ops::f32_row(c.width),
                end = smaller(c.count, (item + 1) * ops::kTokensPerItem);
  for (int64_t t = item * ops::kTokensPerItem; t < end; ++t) {
    for (int64_t d = 0; d < c.width; d += kLanes) {
      f32x16 sum = {};
      for (int64_t g = 0; g < ops::kHeadGroups; ++g) {
        // A group without blocks has written nothing.
        if (blocks * g / ops::kHeadGroups == blocks * (g + 1) / ops::kHeadGroups) continue;
        sum += load(c.partial + (g * c.chunk + t) * ldp + d);
      }
      char* dh = c.dh + (t * c.dh_row + d) * kElement<T>;
      if constexpr (kElement<T> == 4)
        store_n(reinterpret_cast<float*>(dh), sum, c.width - d);
      else
        store_bf16_n(dh, sum, c.width - d);
    }
  }
}

}  // namespace

extern const ops::HeadKernels kHeadKernels;
constexpr ops::HeadKernels kHeadKernels = {{pack<F32>, pack<Bf16>},
                                           {forward<F32>, forward<Bf16>},
                                           normalise,
                                           {backward<F32>, backward<Bf16>},
                                           {finish<F32>, finish<Bf16>}};

}  // namespace rhea::RHEA_ISA_NAMESPACE
