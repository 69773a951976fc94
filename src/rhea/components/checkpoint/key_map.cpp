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

KeyMap renaming_key_map(std::function<std::optional<RenamedKey>(const std::string&)> rename,
                        int64_t head_dim) {
  KeyMap map;
  map.to_hf = [rename = std::move(rename), head_dim](const std::string& native,
                                                     std::span<const int64_t> shape) {
    const auto key = rename(native);
    if (!key) throw Error("no Hugging Face key is known for the parameter '{}'", native);
    HfPart part{key->name, {shape.begin(), shape.end()}};
    if (key->half_split) part.rows = half_split_rows(shape[0], head_dim);
    return std::vector{std::move(part)};
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
