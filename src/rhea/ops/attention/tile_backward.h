// Gradient of one (row, kv head): for each block of keys all blocks of queries that see it, so that
// scores are formed once (five products, not seven). dq of one head and dk, dv of the kv head are
// f32 sums in the thread's scratch and are written once.
#pragma once
#include "rhea/ops/attention/tile_scores.h"

namespace rhea::RHEA_ISA_NAMESPACE {

// kWidth: width of q, k and v after padding where it is known, else 0.
template <class E, bool kCap, bool kBias, int kWidth>
class Backward {
 public:
  static constexpr int kPairs = Packing<E>::kPairs;
  static constexpr int kQueries = 64, kKeys = 128;
  static constexpr int kStride = kPairs == 2 ? kKeys / 2 + 8 : kKeys;

  static int64_t scratch_floats(const ops::AttentionTiles& tiles) {
    Carver carver{nullptr};
    Backward sizes(tiles, carver);
    return carver.used;
  }

  Backward(const ops::AttentionTiles& tiles, Carver& scratch)
      : tiles_(tiles), scores_(tiles.scale, tiles.softcap) {
    padded_ = round_up_to(tiles.row, ops::kTilePanel) + kKeys;
    columns_ = round_up_to(tiles.width, ops::kTileColumns);
    value_columns_ = round_up_to(tiles.value_width, ops::kTileColumns);
    dwords_ = columns_ / kPairs;
    value_dwords_ = value_columns_ / kPairs;
    k_panels_ = scratch.take(padded_ * dwords_);
    v_panels_ = scratch.take(padded_ * value_dwords_);
    k_pairs_ = scratch.take(padded_ * dwords_);
    q_rows_ = scratch.take(padded_ * dwords_);
    q_pairs_ = kPairs == 1 ? q_rows_ : scratch.take(padded_ * dwords_);
    do_rows_ = scratch.take(padded_ * value_dwords_);
    do_pairs_ = kPairs == 1 ? do_rows_ : scratch.take(padded_ * value_dwords_);
    dq_ = scratch.take(padded_ * columns_);
    dk_ = scratch.take(padded_ * columns_);
    dv_ = scratch.take(padded_ * value_columns_);
    minus_lse_ = scratch.take(padded_);
    minus_delta_ = scratch.take(padded_);
    p_pairs_ = scratch.take(kQueries * kKeys);
    ds_pairs_ = scratch.take(kQueries * kKeys);
    ds_rows_ = scratch.take(kQueries * kStride);
    raw_ = scratch.take(4 * ops::kTilePanel);
    dp_ = scratch.take(4 * ops::kTilePanel);
    slope_ = scratch.take(4 * ops::kTilePanel);
    first_ = reinterpret_cast<int32_t*>(scratch.take(padded_));
    if (kBias) bias_ = scratch.take(padded_);
  }

  void run(int64_t item) {
    const int64_t row = item / tiles_.kv_heads, kv = item % tiles_.kv_heads;
    base_ = row * tiles_.row;
    fill_first_keys(tiles_, row, tiles_.row, padded_, first_);
    const HeadView<E> k = head(tiles_.k, kv, tiles_.width),
                      v = head(tiles_.v, kv, tiles_.value_width);
    pack_panels(k_panels_, k, 0, tiles_.row);
    pack_panels(v_panels_, v, 0, tiles_.row);
    pack_pairs(k_pairs_, k, 0, tiles_.row);
    fill_zero(dk_, round_up_to(tiles_.row, 16) * columns_);
    fill_zero(dv_, round_up_to(tiles_.row, 16) * value_columns_);
    for (int64_t n = kv * tiles_.group; n < (kv + 1) * tiles_.group; ++n) run_head(row, n);
    E* dk = static_cast<E*>(tiles_.dk.data) + base_ * tiles_.dk.stride + kv * tiles_.width;
    E* dv = static_cast<E*>(tiles_.dv.data) + base_ * tiles_.dv.stride + kv * tiles_.value_width;
    for (int64_t t = 0; t < tiles_.row; ++t) {
      unpack_row(dk + t * tiles_.dk.stride, dk_ + t * columns_, tiles_.width, vec_of(tiles_.scale));
      unpack_row(dv + t * tiles_.dv.stride, dv_ + t * value_columns_, tiles_.value_width,
                 vec_of(1.0f));
    }
  }

 private:
  // Constants where the width is: the loops over it are then unrolled.
  __attribute__((always_inline)) int64_t columns() const { return kWidth > 0 ? kWidth : columns_; }
  __attribute__((always_inline)) int64_t value_columns() const {
    return kWidth > 0 ? kWidth : value_columns_;
  }
  __attribute__((always_inline)) int64_t dwords() const { return columns() / kPairs; }
  __attribute__((always_inline)) int64_t value_dwords() const { return value_columns() / kPairs; }

  HeadView<E> head(const ops::TileOperand& x, int64_t index, int64_t width) const {
    return {x, base_, index, width};
  }

  void run_head(int64_t row, int64_t n) {
    const HeadView<E> q = head(tiles_.q, n, tiles_.width);
    const HeadView<E> d_o = head(tiles_.d_o, n, tiles_.value_width);
    const int64_t length = tiles_.row;
    pack_rows_and_pairs(q_rows_, q_pairs_, q, length);
    pack_rows_and_pairs(do_rows_, do_pairs_, d_o, length);
    fill_zero(dq_, round_up_to(length, 16) * columns_);
    fill_sums(row, n, d_o);
    if constexpr (kBias) fill_bias(tiles_, row, n, 0, length, padded_, bias_);
    Ahead ahead(length);
    foresee(ahead, row, n);
    for (int64_t k0 = 0; k0 < length; k0 += kKeys)
      for (int64_t q0 = k0 / kQueries * kQueries; q0 < length && first_[q0] < k0 + kKeys;
           q0 += kQueries) {
        const int64_t num_q = smaller<int64_t>(kQueries, round_up_to(length - q0, 16));
        const int64_t num_k =
            smaller(smaller<int64_t>(kKeys, q0 + num_q - k0), round_up_to(length - k0, 16));
        const Block block{q0, num_q, k0, num_k, first_};
        probabilities(block, ahead);
        add_products(block);
      }
    E* dq = static_cast<E*>(tiles_.dq.data) + base_ * tiles_.dq.stride + n * tiles_.width;
    for (int64_t t = 0; t < length; ++t)
      unpack_row(dq + t * tiles_.dq.stride, dq_ + t * columns_, tiles_.width, vec_of(tiles_.scale));
  }

  // -lse in base 2 and -(do o - dlse) per query, and the gradient of the sink.
  void fill_sums(int64_t row, int64_t n, const HeadView<E>& d_o) {
    const int64_t heads = tiles_.query_heads;
    const HeadView<E> o = head(tiles_.o, n, tiles_.value_width);
    float d_sink = 0;
    for (int64_t t = 0; t < round_up_to(tiles_.row, 16); ++t)
      minus_lse_[t] = t < tiles_.row ? -kLog2E * tiles_.lse[(base_ + t) * heads + n] : 0.0f;
    for (int64_t t = 0; t < round_up_to(tiles_.row, 16); t += kVec) {
      fvec minus_delta = -row_dots(o, d_o, t, tiles_.row);
      if (tiles_.d_lse)
        for (int64_t j = 0; j < smaller<int64_t>(kVec, tiles_.row - t); ++j)
          minus_delta[j] += tiles_.d_lse[(base_ + t + j) * heads + n];
      vec_store(minus_delta_ + t, minus_delta);
      if (!tiles_.d_sink) continue;
      const fvec part = minus_delta * vec_exp2(vec_load(minus_lse_ + t) + sink_log2(tiles_, n));
      for (int64_t j = 0; j < smaller<int64_t>(kVec, tiles_.row - t); ++j) d_sink += part[j];
    }
    if (tiles_.d_sink) tiles_.d_sink[row * heads + n] = d_sink;
  }

  // The rows that come after this head.
  void foresee(Ahead& ahead, int64_t row, int64_t n) const {
    const bool same_row = n + 1 < tiles_.query_heads;
    const int64_t next = same_row ? n + 1 : 0, base = same_row ? base_ : base_ + tiles_.row;
    if (!same_row && (row + 1) * tiles_.kv_heads >= tiles_.num_pairs) return;
    ahead.add(HeadView<E>(tiles_.q, base, next, tiles_.width));
    ahead.add(HeadView<E>(tiles_.o, base, next, tiles_.value_width));
    ahead.add(HeadView<E>(tiles_.d_o, base, next, tiles_.value_width));
    ahead.add(HeadView<E>(tiles_.dq, base, next, tiles_.width));
    if (next % tiles_.group != 0) return;
    ahead.add(HeadView<E>(tiles_.k, base, next / tiles_.group, tiles_.width));
    ahead.add(HeadView<E>(tiles_.v, base, next / tiles_.group, tiles_.value_width));
    ahead.add(HeadView<E>(tiles_.dk, base, next / tiles_.group, tiles_.width));
    ahead.add(HeadView<E>(tiles_.dv, base, next / tiles_.group, tiles_.value_width));
  }

  // P and dS of the block. While the dP product of a tile runs, its P is made from the scores;
  // while the next score product runs, its dS.
  void probabilities(const Block& block, Ahead& ahead) {
    Tile current, pending;
    const auto probs = [&](int part) RHEA_INLINE_LAMBDA { exponentiate(block, current, part); };
    const auto grads = [&](int part) RHEA_INLINE_LAMBDA { differentiate(pending, part); };
    for (int64_t j = 0; j < block.num_k; j += ops::kTilePanel)
      for (int64_t i = block.begin_query(j), end = block.end_query(j); i < end; i += 4) {
        current = tile_at(block, i, j);
        const int64_t query = block.q0 + i, key = block.k0 + j;
        const float *q = q_rows_ + query * dwords(), *k = k_panels_ + key * dwords();
        const float *d_o = do_rows_ + query * value_dwords(), *v = v_panels_ + key * value_dwords();
        const float* delta = minus_delta_ + query;  // where the sum of dP starts
        if (current.keys == 64) {
          score_tile<E, 64>(raw_, q, k, nullptr, dwords(), grads);
          score_tile<E, 64>(dp_, d_o, v, delta, value_dwords(), probs);
        } else {
          score_tile<E, 32>(raw_, q, k, nullptr, dwords(), grads);
          score_tile<E, 32>(dp_, d_o, v, delta, value_dwords(), probs);
        }
        pending = current;
        ahead.step();
      }
    for (int part = 0; part < 4; ++part) grads(part);
  }

  // P of 2 queries x 32 keys into p_pairs_; P times the slope of the soft cap into slope_.
  __attribute__((always_inline)) void exponentiate(const Block& block, const Tile& tile, int part) {
    const int64_t r = part % 2 * 2, x = part / 2 * 32, i = tile.i + r;
    if (x >= tile.keys) return;
    for (int64_t y = x; y < x + 32; y += 2 * kVec) {
      const int64_t at = r * ops::kTilePanel + y;
      fvec e[4], minus[4], slope[4];
      RHEA_UNROLL for (int z = 0; z < 4; ++z) {
        e[z] = vec_load(raw_ + at + z / 2 * ops::kTilePanel + z % 2 * kVec);
        minus[z] = vec_of(minus_lse_[block.q0 + i + z / 2]);
        if constexpr (kBias)
          minus[z] = minus[z] + (vec_load(bias_ + block.k0 + tile.j + y + z % 2 * kVec) -
                                 vec_of(bias_[block.q0 + i + z / 2]));
      }
      scores_.shift(e, minus, slope);
      vec_exp2(e);
      if (tile.masked) {
        RHEA_UNROLL for (int z = 0; z < 4; ++z) {
          const int64_t query = block.q0 + i + z / 2;
          e[z] =
              vec_select(visible(block.k0 + tile.j + y + z % 2 * kVec, query, block.first[query]),
                         e[z], fvec{});
        }
      }
      RHEA_UNROLL for (int z = 0; z < 4; ++z) vec_store(
          slope_ + at + z / 2 * ops::kTilePanel + z % 2 * kVec, kCap ? e[z] * slope[z] : e[z]);
      float* pairs = p_pairs_ + i / kPairs * kKeys + tile.j + y;
      put_pair<E>(pairs, e[0], e[2], kKeys);
      put_pair<E>(pairs + kVec, e[1], e[3], kKeys);
    }
  }

  // dS = P (dP - delta) of 2 queries x 32 keys, by rows and by pairs of queries.
  __attribute__((always_inline)) void differentiate(const Tile& tile, int part) {
    const int64_t r = part % 2 * 2, x = part / 2 * 32, i = tile.i + r;
    if (x >= tile.keys) return;
    for (int64_t y = x; y < x + 32; y += 2 * kVec) {
      const int64_t at = r * ops::kTilePanel + y;
      fvec ds[4];
      RHEA_UNROLL for (int z = 0; z < 4; ++z) {
        const int64_t element_at = at + z / 2 * ops::kTilePanel + z % 2 * kVec;
        ds[z] = vec_load(dp_ + element_at) * vec_load(slope_ + element_at);
      }
      float* rows = ds_rows_ + i * kStride + (tile.j + y) / kPairs;
      float* pairs = ds_pairs_ + i / kPairs * kKeys + tile.j + y;
      put_row<E>(rows, ds[0], ds[1]);
      put_row<E>(rows + kStride, ds[2], ds[3]);
      put_pair<E>(pairs, ds[0], ds[2], kKeys);
      put_pair<E>(pairs + kVec, ds[1], ds[3], kKeys);
    }
  }

  // dv += P^T do, dk += dS^T q, dq += dS k
  void add_products(const Block& block) {
    for_column_chunks(value_columns(), [&](int64_t c, auto chunk) {
      add_over_queries(block, chunk, dv_ + c, value_columns(), p_pairs_, do_pairs_ + c);
    });
    for_column_chunks(columns(), [&](int64_t c, auto chunk) {
      add_over_queries(block, chunk, dk_ + c, columns(), ds_pairs_, q_pairs_ + c);
      constexpr int kRows = decltype(chunk)::kBlockRows, kVecs = decltype(chunk)::kVectors;
      for (int64_t i = 0; i < block.num_q; i += kRows) {
        const int64_t begin = block.begin_key(i), end = block.end_key(i, kRows);
        if (begin >= end) continue;
        add_product<E, kRows, kVecs, kStride, 1>(
            dq_ + (block.q0 + i) * columns() + c, columns(),
            ds_rows_ + i * kStride + begin / kPairs,
            k_pairs_ + (block.k0 + begin) / kPairs * columns() + c, columns(),
            (end - begin) / kPairs);
      }
    });
  }

  // sums[key] += sum over queries of a[query][key] b[query]
  template <class Chunk>
  __attribute__((always_inline)) void add_over_queries(const Block& block, Chunk, float* sums,
                                                       int64_t width, const float* a,
                                                       const float* b) {
    int64_t end = 0;
    for (int64_t j = 0; j < block.num_k; j += Chunk::kBlockRows) {
      if (j % ops::kTilePanel == 0) end = block.end_query(j);
      const int64_t begin = block.begin_query(j);
      if (begin >= end) continue;
      add_product<E, Chunk::kBlockRows, Chunk::kVectors, 1, kKeys>(
          sums + (block.k0 + j) * width, width, a + begin / kPairs * kKeys + j,
          b + (block.q0 + begin) / kPairs * width, width, (end - begin) / kPairs);
    }
  }

  const ops::AttentionTiles& tiles_;
  const Scores<kCap> scores_;
  int64_t padded_ = 0, columns_ = 0, value_columns_ = 0, dwords_ = 0, value_dwords_ = 0;
  int64_t base_ = 0;  // first token of the row
  float *k_panels_, *v_panels_, *k_pairs_, *q_rows_, *q_pairs_, *do_rows_, *do_pairs_;
  float *dq_, *dk_, *dv_, *minus_lse_, *minus_delta_;
  float *p_pairs_, *ds_pairs_, *ds_rows_, *raw_, *dp_, *slope_;
  int32_t* first_;
  float* bias_ = nullptr;  // by token of the row
};

}  // namespace rhea::RHEA_ISA_NAMESPACE
