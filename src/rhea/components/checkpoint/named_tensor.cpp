// Names and parts of tensors.
#include "rhea/components/checkpoint/named_tensor.h"

#include <algorithm>

#include "rhea/base/error.h"

namespace rhea::checkpoint {

int64_t NamedTensor::num_elements() const {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

bool is_optimizer_state(std::string_view name) { return name.starts_with("optimizer."); }

std::vector<NamedTensor> split_fused_qkv(const NamedTensor& fused, int64_t num_heads,
                                         int64_t num_kv_heads, int64_t head_dim,
                                         const std::string& wq, const std::string& wk,
                                         const std::string& wv) {
  const int64_t group = div_exact(num_heads, num_kv_heads);
  RHEA_CHECK(!fused.shape.empty() && fused.shape[0] == num_kv_heads * (group + 2) * head_dim &&
                 fused.rows.empty(),
             "{} is not a fused projection of {} and {} heads of {}", fused.name, num_heads,
             num_kv_heads, head_dim);
  const auto part = [&](const std::string& name, int64_t first_head, int64_t heads_per_group) {
    NamedTensor tensor = fused;
    tensor.name = name;
    tensor.shape[0] = num_kv_heads * heads_per_group * head_dim;
    for (int64_t k = 0; k < num_kv_heads; ++k) {
      const int64_t begin = (k * (group + 2) + first_head) * head_dim;
      for (int64_t i = 0; i < heads_per_group * head_dim; ++i) tensor.rows.push_back(begin + i);
    }
    return tensor;
  };
  return {part(wq, 0, group), part(wk, group, 1), part(wv, group + 1, 1)};
}

}  // namespace rhea::checkpoint
