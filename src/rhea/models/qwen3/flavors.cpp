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
  double theta = 1e6;
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

// `hidden_dim` of an expert; 8 experts of a token.
constexpr DecoderSizes sparse(int64_t dim, int64_t n_layers, int64_t n_heads, int64_t n_kv_heads,
                              int64_t hidden_dim, int64_t num_experts,
                              int64_t vocab_size = 151936) {
  DecoderSizes made = sizes(dim, n_layers, n_heads, hidden_dim, false, vocab_size);
  made.n_kv_heads = n_kv_heads;
  made.experts = {.num_experts = num_experts, .top_k = 8, .load_balance_coeff = kLoadBalanceCoeff};
  return made;
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
    Flavor{"debugmodel_moe", sparse(256, 8, 16, 8, 768, 64, 2048), 4096},
    Flavor{"30B-A3B", sparse(2048, 48, 32, 4, 768, 128)},
    // Published files say 1e6 or 5e6, by release: config.json decides where weights are loaded.
    Flavor{"235B-A22B", sparse(4096, 94, 64, 4, 1536, 128), 40960, 5e6},
};

}  // namespace

DecoderSizes flavor_sizes(std::string_view flavor) {
  return find_flavor("qwen3", kFlavors, flavor).sizes;
}

nn::CosSinRoPE::Config flavor_rope(std::string_view flavor) {
  const Flavor& found = find_flavor("qwen3", kFlavors, flavor);
  nn::CosSinRoPE::Config rope;
  rope.max_position_embeddings = found.context;
  rope.theta = found.theta;
  return rope;
}

ModelSpec make_spec(std::string_view flavor, const DecoderSizes& sizes, const nn::RopeFields& rope,
                    std::string_view attn_backend) {
  return models::make_spec("qwen3", flavor, build(sizes, rope), attn_backend);
}

ModelSpec model_registry(std::string_view flavor, std::string_view attn_backend, bool fuse_qkv,
                         std::string_view moe_comm_backend) {
  check_moe_comm_backend(moe_comm_backend);
  DecoderSizes chosen = flavor_sizes(flavor);
  chosen.fuse_qkv = chosen.fuse_qkv && fuse_qkv;
  return make_spec(flavor, chosen, flavor_rope(flavor), attn_backend);
}

ModelSpec model_registry(std::string_view flavor, Converters converters) {
  ModelSpec spec = model_registry(flavor);
  spec.converters = std::move(converters);
  return spec;
}

}  // namespace rhea::models::qwen3
