// Published sizes of Qwen3; head_dim is 128 whatever dim / n_heads is.
#include <array>

#include "rhea/models/flavor.h"
#include "rhea/models/qwen3/qwen3.h"

namespace rhea::models::qwen3 {
namespace {

struct Flavor {
  std::string_view name;
  DecoderSizes sizes;
  int64_t context = 40960;
};

constexpr DecoderSizes sizes(int64_t dim, int64_t n_layers, int64_t n_heads, int64_t hidden_dim,
                             bool tied, int64_t vocab_size = 151936) {
  return {.dim = dim,
          .n_layers = n_layers,
          .n_heads = n_heads,
          .n_kv_heads = 8,
          .head_dim = 128,
          .hidden_dim = hidden_dim,
          .vocab_size = vocab_size,
          .tied = tied,
          .norm_eps = 1e-6};
}

constexpr DecoderSizes unfused(DecoderSizes from) {
  from.fuse_qkv = false;
  return from;
}

constexpr DecoderSizes kDebug = sizes(256, 8, 16, 3072, true, 2048);

const std::array kFlavors = {
    Flavor{"debugmodel", kDebug, 4096},
    Flavor{"debugmodel_non_fused_qkv", unfused(kDebug), 4096},
    Flavor{"0.6B", sizes(1024, 28, 16, 3072, true)},
    Flavor{"1.7B", sizes(2048, 28, 16, 6144, true)},
    Flavor{"4B", sizes(2560, 36, 32, 9728, true)},
    Flavor{"8B", sizes(4096, 36, 32, 12288, false)},
    Flavor{"14B", sizes(5120, 40, 40, 17408, false)},
    Flavor{"32B", sizes(5120, 64, 64, 25600, false)},
};

}  // namespace

ModelSpec model_registry(std::string_view flavor, std::string_view attn_backend, bool fuse_qkv) {
  const Flavor& found = find_flavor("qwen3", kFlavors, flavor);
  DecoderSizes chosen = found.sizes;
  chosen.fuse_qkv = chosen.fuse_qkv && fuse_qkv;
  nn::CosSinRoPE::Config rope;
  rope.max_position_embeddings = found.context;
  rope.theta = 1e6;
  return make_spec("qwen3", flavor, build(chosen, rope), attn_backend);
}

}  // namespace rhea::models::qwen3
