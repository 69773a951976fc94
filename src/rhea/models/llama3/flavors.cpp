// Published sizes of Llama 3.
#include <array>

#include "rhea/base/error.h"
#include "rhea/models/flavor.h"
#include "rhea/models/llama3/llama3.h"

namespace rhea::models::llama3 {
namespace {

struct Flavor {
  std::string_view name;
  DecoderSizes sizes;
  double rope_factor = 8;
};

constexpr int64_t kVocabSize = 128256;

const std::array kFlavors = {
    Flavor{"debugmodel",
           {.dim = 256,
            .n_layers = 6,
            .n_heads = 16,
            .n_kv_heads = 16,
            .hidden_dim = 768,
            .vocab_size = 2048}},
    Flavor{"1B",
           {.dim = 2048,
            .n_layers = 16,
            .n_heads = 32,
            .n_kv_heads = 8,
            .hidden_dim = 8192,
            .vocab_size = kVocabSize,
            .tied = true},
           32},
    Flavor{"3B",
           {.dim = 3072,
            .n_layers = 28,
            .n_heads = 24,
            .n_kv_heads = 8,
            .hidden_dim = 8192,
            .vocab_size = kVocabSize,
            .tied = true},
           32},
    Flavor{"8B",
           {.dim = 4096,
            .n_layers = 32,
            .n_heads = 32,
            .n_kv_heads = 8,
            .hidden_dim = 14336,
            .vocab_size = kVocabSize}},
    Flavor{"70B",
           {.dim = 8192,
            .n_layers = 80,
            .n_heads = 64,
            .n_kv_heads = 8,
            .hidden_dim = 28672,
            .vocab_size = kVocabSize}},
    Flavor{"405B",
           {.dim = 16384,
            .n_layers = 126,
            .n_heads = 128,
            .n_kv_heads = 8,
            .hidden_dim = 53248,
            .vocab_size = kVocabSize}},
};

}  // namespace

ModelSpec model_registry(std::string_view flavor, std::string_view attn_backend, bool fuse_qkv) {
  const Flavor& found = find_flavor("llama3", kFlavors, flavor);
  DecoderSizes sizes = found.sizes;
  sizes.fuse_qkv = fuse_qkv;
  nn::ComplexRoPE::Config rope;
  rope.max_position_embeddings = 131072;
  rope.theta = 5e5;
  rope.scaling = "llama3";
  rope.factor = found.rope_factor;
  rope.original_max_position_embeddings = 8192;
  return make_spec("llama3", flavor, build(sizes, rope), attn_backend);
}

ModelSpec model_registry(std::string_view flavor, Converters converters) {
  ModelSpec spec = model_registry(flavor);
  spec.converters = std::move(converters);
  return spec;
}

}  // namespace rhea::models::llama3
