// Rows drawn from a counter.
#include "rhea/components/data/random_rows.h"

#include <fmt/format.h>

#include <numeric>

#include "rhea/base/error.h"

namespace rhea::data {

RandomRows::RandomRows(uint64_t seed, int64_t vocab_size)
    : key_(rng_key(seed, "random tokens")), vocab_size_(static_cast<uint64_t>(vocab_size)) {
  if (vocab_size < 1)
    throw Error("dataset random: the size of the vocabulary is {}, expected at least 1",
                vocab_size);
}

void RandomRows::read(int64_t number, const RowView& row) const {
  // One id more than the row is long: the label of its last position.
  const uint64_t first = static_cast<uint64_t>(number) * (row.input.size() + 1);
  const auto id = [&](size_t i) {
    return static_cast<int32_t>(rng_below(key_, first + i, vocab_size_));
  };
  for (size_t i = 0; i < row.input.size(); ++i) {
    row.input[i] = i == 0 ? id(0) : row.labels[i - 1];
    row.labels[i] = id(i + 1);
  }
  std::iota(row.positions.begin(), row.positions.end(), 0);
}

std::string RandomRows::description() const {
  return fmt::format("a counter: tokens uniform in [0, {})", vocab_size_);
}

}  // namespace rhea::data
