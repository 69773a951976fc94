// The layers of a model.
#include "bench/kernels/models.h"

#include <fmt/core.h>

namespace rhea::bench {

std::vector<Layer> layers_of(const Model& m, int64_t tokens) {
  std::vector<Layer> all;
  const auto add = [&](const char* layer, int64_t N, int64_t K) {
    all.push_back({tokens == kTokens ? fmt::format("{}.{}", m.name, layer)
                                     : fmt::format("{}.{}.{}", m.name, layer, tokens),
                   tokens, N, K});
  };
  add("qkv", (m.heads + 2 * m.kv_heads) * m.H, m.D);
  add("o", m.D, m.heads * m.H);
  add("gate", m.F, m.D);
  add("down", m.D, m.F);
  return all;
}

Layer vocabulary_of(const Model& m) {
  return {fmt::format("{}.vocabulary", m.name), 512, m.V, m.D};
}

}  // namespace rhea::bench
