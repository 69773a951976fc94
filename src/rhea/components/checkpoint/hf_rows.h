// Rows of a native tensor that a Hugging Face tensor holds.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "rhea/base/error.h"
#include "rhea/components/checkpoint/key_map.h"

namespace rhea::checkpoint {

// How a part cuts a native tensor of `native_bytes` bytes into rows. Throws Error when the key
// map's numbers do not fit.
struct HfRows {
  int64_t num_rows = 0;
  int64_t row_bytes = 0;

  HfRows(const HfPart& part, const std::string& native, int64_t native_bytes, int64_t item_bytes) {
    int64_t elements = 1;
    for (const int64_t dim : part.shape) elements *= dim;
    num_rows = part.shape.empty() ? 1 : part.shape[0];
    row_bytes = num_rows == 0 ? 0 : elements / num_rows * item_bytes;
    const bool counts = part.rows.empty() ? elements * item_bytes == native_bytes
                                          : static_cast<int64_t>(part.rows.size()) == num_rows;
    bool inside = true;
    for (const int64_t row : part.rows)
      inside = inside && row >= 0 && (row + 1) * row_bytes <= native_bytes;
    if (!counts || !inside)
      throw Error("key map: '{}' does not fit into '{}' of {} bytes", part.name, native,
                  native_bytes);
  }
  // Calls f(row of the part, row of the native tensor).
  template <class F>
  void for_each(const HfPart& part, const F& f) const {
    for (int64_t i = 0; i < num_rows; ++i)
      f(i, part.rows.empty() ? i : part.rows[static_cast<size_t>(i)]);
  }
};

}  // namespace rhea::checkpoint
