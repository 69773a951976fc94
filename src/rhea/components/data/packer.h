// From tokenised documents to rows. A document of n tokens gives n - 1 positions: inputs are tokens
// 0 .. n-2, labels tokens 1 .. n-1, so that no label crosses from one document into the next.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "rhea/components/data/row_source.h"

namespace rhea::data {

using Tokens = std::vector<int32_t>;
// Documents are shared with snapshots.
using SharedTokens = std::shared_ptr<const Tokens>;
// Fills in the next document (at least 2 tokens); false when there is none.
using NextDocument = std::function<bool(Tokens&)>;

// Documents one after the other; a row ends after seq_len positions, and its rest begins the next
// row. Positions count from 0 in each document and again at the begin of each row.
class ConcatPacker {
 public:
  // False when the documents end before the row is full; the begun row is lost.
  bool next_row(const RowView& row, const NextDocument& next);
  Snapshot snapshot() const;
  // Goes on with what these states carry, in this order.
  void restore(std::span<const nlohmann::json> states);

 private:
  SharedTokens document_ = std::make_shared<Tokens>();  // the one being cut
  size_t begin_ = 0;                                    // its first token that is not yet an input
  std::deque<SharedTokens> carried_;  // parts of documents that come before the next document
};

// Whole documents into at most num_bins open rows, each into the first row with room. If none has
// room the fullest row is closed. The rest of a row is padding: token 0, no label, positions of a
// document of its own.
class BinPacker {
 public:
  BinPacker(int num_bins, int64_t seq_len)
      : num_bins_(static_cast<size_t>(num_bins)), seq_len_(seq_len) {}

  bool next_row(const RowView& row, const NextDocument& next);
  // Documents dropped because they are longer than a row.
  int64_t num_too_long() const { return num_too_long_; }
  Snapshot snapshot() const;
  // Takes up the open rows of all these states.
  void restore(std::span<const nlohmann::json> states);

 private:
  struct Bin {
    std::vector<SharedTokens> documents;
    int64_t used = 0;
    void add(SharedTokens document);
  };
  void emit(size_t bin, const RowView& row);

  size_t num_bins_;
  int64_t seq_len_;
  std::vector<Bin> bins_;  // oldest first
  int64_t num_too_long_ = 0;
};

}  // namespace rhea::data
