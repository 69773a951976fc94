// Maps that need no model.
#include "rhea/components/checkpoint/key_map.h"

#include "rhea/base/error.h"

namespace rhea::checkpoint {

KeyMap identity_key_map() {
  KeyMap map;
  map.to_hf = [](const std::string& native, std::span<const int64_t> shape) {
    return std::vector<HfPart>{{native, {shape.begin(), shape.end()}}};
  };
  return map;
}

std::vector<int64_t> half_split_rows(int64_t num_rows, int64_t head_dim) {
  const int64_t num_heads = div_exact(num_rows, head_dim);
  const int64_t half = div_exact(head_dim, 2);
  std::vector<int64_t> rows;
  rows.reserve(static_cast<size_t>(num_rows));
  for (int64_t h = 0; h < num_heads; ++h) {
    for (int64_t j = 0; j < 2; ++j) {
      for (int64_t i = 0; i < half; ++i) rows.push_back(h * head_dim + 2 * i + j);
    }
  }
  return rows;
}

}  // namespace rhea::checkpoint
