// Forward pass over the queries of one item: (row, kv head, chunk of queries), all query heads of
// the group.
//
// There is no running maximum. Each query's reference is its score with itself: it always sees
// itself, so nothing of weight can underflow, and since f32 and bf16 keep their relative precision
// up to 2^127, a larger score elsewhere does no harm until it is 2^60 times larger. Only then
// (looked at once per block, on the sums) the query's reference is raised and the block redone.
#pragma once
#include "rhea/ops/attention/tile_scores.h"

namespace rhea::RHEA_ISA_NAMESPACE {

// kWidth: width of q, k and v after padding where it is known, else 0.
template <class E, bool kCap, bool kBias, int kWidth, int kQueries, int kKeys>
class Forward {
 public:
  static constexpr int kPairs = Packing<E>::kPairs;
  static constexpr int kStride =
      kPairs == 2 ? kKeys / 2 + 8 : kKeys;  // the skew avoids bank conflicts

  static int64_t scratch_floats(const ops::AttentionTiles& tiles) {
    Carver carver{nullptr};
    Forward sizes(tiles, carver);
    return carver.used;
  }

  Forward(const ops::AttentionTiles& tiles, Carver& scratch)
      : tiles_(tiles), scores_(tiles.scale, tiles.softcap) {
    const int64_t keys = round_up_to(tiles.row, ops::kTilePanel) + ops::kTileMaxBlock;
    const int64_t dwords = round_up_to(tiles.width, ops::kTileColumns) / kPairs;
    value_columns_ = round_up_to(tiles.value_width, ops::kTileColumns);
    dwords_ = dwords;
    k_panels_ = scratch.take(keys * dwords);
    v_pairs_ = scratch.take(keys / kPairs * value_columns_);
    q_rows_ = scratch.take(kQueries * dwords);
    acc_ = scratch.take(kQueries * value_columns_);
    p_ = scratch.take(kQueries * kStride);
    sum_ = scratch.take(kQueries * kVec);
    total_ = scratch.take(kQueries * kVec);
    reference_ = scratch.take(kQueries);
    raw_ = scratch.take(4 * ops::kTilePanel);
    first_ = reinterpret_cast<int32_t*>(scratch.take(keys));
    if (kBias) bias_ = scratch.take(keys);
  }

  void run(int64_t item) {
    const int64_t chunk = item % tiles_.num_chunks, pair = item / tiles_.num_chunks;
    const int64_t row = pair / tiles_.kv_heads, kv = pair % tiles_.kv_heads;
    base_ = row * tiles_.row;
    q_end_ = smaller(tiles_.row, (chunk + 1) * tiles_.chunk);
    const int64_t q_begin = chunk * tiles_.chunk;
    fill_first_keys(tiles_, row, q_end_, round_up_to(q_end_, 16), first_);
    k_begin_ = first_[q_begin] / kKeys * kKeys;
    const HeadView<E> k = head(tiles_.k, kv, tiles_.width),
                      v = head(tiles_.v, kv, tiles_.value_width);
    pack_panels(k_panels_, k, k_begin_, q_end_);
    pack_pairs(v_pairs_, v, k_begin_, q_end_);
    for (int64_t n = kv * tiles_.group; n < (kv + 1) * tiles_.group; ++n) {
      Ahead ahead(q_end_ - q_begin);
      foresee(ahead, pair, q_begin, n);
      if constexpr (kBias)
        fill_bias(tiles_, row, n, k_begin_, q_end_, round_up_to(q_end_, ops::kTilePanel), bias_);
      for (int64_t q0 = q_begin; q0 < q_end_; q0 += kQueries) run_block(n, k, q0, ahead);
    }
  }

 private:
  // Constants where the width is: the loops over it are then unrolled.
  __attribute__((always_inline)) int64_t dwords() const {
    return kWidth > 0 ? kWidth / kPairs : dwords_;
  }
  __attribute__((always_inline)) int64_t value_columns() const {
    return kWidth > 0 ? kWidth : value_columns_;
  }

  HeadView<E> head(const ops::TileOperand& x, int64_t index, int64_t width) const {
    return {x, base_, index, width};
  }

  // The rows that come after this head: the group's next q, or the next pair's q, k and v.
  void foresee(Ahead& ahead, int64_t pair, int64_t first_query, int64_t n) const {
    if ((n + 1) % tiles_.group != 0) {
      ahead.add(HeadView<E>(tiles_.q, base_ + first_query, n + 1, tiles_.width));
      ahead.add(HeadView<E>(tiles_.o, base_ + first_query, n + 1, tiles_.value_width));
    } else if (tiles_.num_chunks == 1 && pair + 1 < tiles_.num_pairs) {
      const int64_t kv = (pair + 1) % tiles_.kv_heads;
      const int64_t base = (pair + 1) / tiles_.kv_heads * tiles_.row;
      ahead.add(HeadView<E>(tiles_.q, base, kv * tiles_.group, tiles_.width));
      ahead.add(HeadView<E>(tiles_.k, base, kv, tiles_.width));
      ahead.add(HeadView<E>(tiles_.v, base, kv, tiles_.value_width));
      ahead.add(HeadView<E>(tiles_.o, base, kv * tiles_.group, tiles_.value_width));
    }
  }

  void run_block(int64_t n, const HeadView<E>& k, int64_t q0, Ahead& ahead) {
    const HeadView<E> q = head(tiles_.q, n, tiles_.width);
    const int64_t num_q = smaller<int64_t>(kQueries, round_up_to(q_end_ - q0, 16));
    const float sink = tiles_.sink ? sink_log2(tiles_, n) : 0.0f;
    pack_rows(q_rows_, q, q0, num_q, q_end_);
    fill_zero(acc_, num_q * value_columns_);
    fill_zero(total_, num_q * kVec);
    for (int64_t i = 0; i < num_q; i += kVec) {
      fvec reference = -scores_(row_dots(q, k, q0 + i, q_end_));
      if (tiles_.sink) reference = vec_select(reference > -sink, vec_of(-sink), reference);
      vec_store(reference_ + i, reference);
    }
    for (int64_t k0 = first_[q0] / kKeys * kKeys; k0 < q0 + num_q; k0 += kKeys) {
      const Block block{q0, num_q, k0, smaller<int64_t>(kKeys, q0 + num_q - k0), first_};
      probabilities(block, ahead);
      if (raise_references(block, q, k)) probabilities(block, ahead);
      for (int64_t i = 0; i < num_q * kVec; i += kVec)
        vec_store(total_ + i, vec_load(total_ + i) + vec_load(sum_ + i));
      add_values(block);
    }
    write(n, q0, num_q, sink);
  }

  // p_ and sum_ of the block.
  void probabilities(const Block& block, Ahead& ahead) {
    Tile pending;
    fill_zero(sum_, block.num_q * kVec);
    const auto softmax = [&](int part) RHEA_INLINE_LAMBDA { exponentiate(block, pending, part); };
    for (int64_t j = 0; j < block.num_k; j += ops::kTilePanel)
      for (int64_t i = block.begin_query(j), end = block.end_query(j); i < end; i += 4) {
        const Tile tile = tile_at(block, i, j);
        const float* a = q_rows_ + i * dwords();
        const float* b = k_panels_ + (block.k0 + j - k_begin_) * dwords();
        if (tile.keys == 64)
          score_tile<E, 64>(raw_, a, b, nullptr, dwords(), softmax);
        else
          score_tile<E, 32>(raw_, a, b, nullptr, dwords(), softmax);
        pending = tile;
        ahead.step();
      }
    for (int part = 0; part < 4; ++part) softmax(part);
  }

  // One of four portions of a tile: 2 queries x 32 keys.
  __attribute__((always_inline)) void exponentiate(const Block& block, const Tile& tile, int part) {
    const int64_t r = part % 2 * 2, x = part / 2 * 32, i = tile.i + r;
    if (x >= tile.keys) return;
    for (int64_t y = x; y < x + 32; y += 2 * kVec) {
      const float* w = raw_ + r * ops::kTilePanel + y;
      fvec e[4], minus[4], slope[4];
      RHEA_UNROLL for (int z = 0; z < 4; ++z) {
        e[z] = vec_load(w + z / 2 * ops::kTilePanel + z % 2 * kVec);
        minus[z] = vec_of(reference_[i + z / 2]);
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
      RHEA_UNROLL for (int z = 0; z < 2; ++z) {
        float* sum = sum_ + (i + z) * kVec;
        vec_store(sum, vec_load(sum) + (e[2 * z] + e[2 * z + 1]));
        put_row<E>(p_ + (i + z) * kStride + (tile.j + y) / kPairs, e[2 * z], e[2 * z + 1]);
      }
    }
  }

  // Where a query's sum over the block passes 2^60 (or is NaN), its reference becomes the largest
  // score of the block. Rare, so plain code. True if any was raised.
  __attribute__((noinline)) bool raise(const Block& block, const HeadView<E>& q,
                                       const HeadView<E>& k, int64_t i) {
    float top = -__builtin_inff();
    const int64_t query = block.q0 + i;
    const int64_t last = smaller(query, block.k0 + block.num_k - 1);
    for (int64_t key = larger<int64_t>(block.k0, block.first[query]); key <= last; ++key) {
      float dot = 0;
      for (int64_t h = 0; h < tiles_.width; ++h)
        dot += element(q.at(query) + h) * element(k.at(key) + h);
      float u = scores_(vec_of(dot))[0];
      if constexpr (kBias) u += bias_[key] - bias_[query];
      top = u > top ? u : top;
    }
    const float before = reference_[i], after = smaller(before, -top);
    const fvec shrink = vec_exp2(vec_of(after - before));
    reference_[i] = after;
    for (int64_t c = 0; c < value_columns_; c += kVec)
      vec_store(acc_ + i * value_columns_ + c, vec_load(acc_ + i * value_columns_ + c) * shrink);
    vec_store(total_ + i * kVec, vec_load(total_ + i * kVec) * shrink);
    return true;
  }
  bool raise_references(const Block& block, const HeadView<E>& q, const HeadView<E>& k) {
    bool raised = false;
    for (int64_t i = 0; i < block.num_q; ++i)
      if (reaches(vec_load(sum_ + i * kVec), 0x1p60f)) raised |= raise(block, q, k, i);
    return raised;
  }

  void add_values(const Block& block) {
    for_column_chunks(value_columns(), [&](int64_t c, auto chunk) {
      constexpr int kRows = decltype(chunk)::kBlockRows, kVecs = decltype(chunk)::kVectors;
      for (int64_t i = 0; i < block.num_q; i += kRows) {
        const int64_t begin = block.begin_key(i), end = block.end_key(i, kRows);
        if (begin >= end) continue;
        add_product<E, kRows, kVecs, kStride, 1>(
            acc_ + i * value_columns() + c, value_columns(), p_ + i * kStride + begin / kPairs,
            v_pairs_ + (block.k0 + begin - k_begin_) / kPairs * value_columns() + c,
            value_columns(), (end - begin) / kPairs);
      }
    });
  }

  void write(int64_t n, int64_t q0, int64_t num_q, float sink) {
    const int64_t heads = tiles_.query_heads;
    E* o = static_cast<E*>(tiles_.o.data) + base_ * tiles_.o.stride + n * tiles_.value_width;
    for (int64_t i = 0; i < num_q; i += kVec) {
      fvec rows[kVec];
      for (int j = 0; j < kVec; ++j) rows[j] = vec_load(total_ + (i + j) * kVec);
      const fvec reference = vec_load(reference_ + i);
      fvec sum = row_sums(rows);
      if (tiles_.sink) sum = sum + vec_exp2(reference + sink);
      const fvec lse = (vec_log2(sum) - reference) * (1 / kLog2E), inverse = 1.0f / sum;
      const int64_t count = smaller<int64_t>(kVec, q_end_ - q0 - i);
      for (int64_t j = 0; j < count; ++j) {
        const int64_t token = q0 + i + j;
        tiles_.lse[(base_ + token) * heads + n] = lse[j];
        unpack_row(o + token * tiles_.o.stride, acc_ + (i + j) * value_columns_, tiles_.value_width,
                   vec_of(inverse[j]));
      }
    }
  }

  const ops::AttentionTiles& tiles_;
  const Scores<kCap> scores_;
  int64_t dwords_ = 0, value_columns_ = 0;
  int64_t base_ = 0, q_end_ = 0, k_begin_ = 0;  // tokens of the item
  float *k_panels_, *v_pairs_, *q_rows_, *acc_, *p_, *sum_, *total_, *reference_, *raw_;
  int32_t* first_;
  float* bias_ = nullptr;  // by token of the row
};

}  // namespace rhea::RHEA_ISA_NAMESPACE
