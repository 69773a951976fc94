// Sizes of the models whose shapes are measured.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace rhea::bench {

// D model dim, H head dim, F hidden dim of the feed-forward, V vocabulary.
struct Model {
  const char* name;
  int64_t D, heads, kv_heads, H, F, V;
};

inline constexpr Model kModels[] = {{"model_a", 768, 12, 12, 64, 2048, 32000},
                                    {"smollm2_135m", 576, 9, 3, 64, 1536, 49152},
                                    {"qwen3_0_6b", 1024, 16, 8, 128, 3072, 151936},
                                    {"qwen3_4b", 2560, 32, 8, 128, 9728, 151936}};
// Tokens of a microbatch.
inline constexpr int64_t kTokens = 2048;

// A layer [N, K] on T tokens: "qwen3_0_6b.gate" of kTokens, "qwen3_0_6b.gate.512" of others.
struct Layer {
  std::string name;
  int64_t T, N, K;
};
// Without the vocabulary.
std::vector<Layer> layers_of(const Model& m, int64_t tokens);
// On 512 tokens, the chunk of the fused loss.
Layer vocabulary_of(const Model& m);

}  // namespace rhea::bench
