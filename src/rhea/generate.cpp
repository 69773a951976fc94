// Two graphs over the same cache: one for pieces of the prompt, one for single tokens. Both give
// the logits of one token: those of a piece would need a packed copy of the head.
#include "rhea/generate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "rhea/base/aligned.h"
#include "rhea/base/error.h"
#include "rhea/base/rng.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/nn/mla.h"
#include "rhea/nn/rope_buffers.h"
#include "rhea/passes/simplify.h"

namespace rhea {
namespace {

constexpr int64_t kPrefill = 64;     // prompt tokens per pass; the last piece is padded
constexpr const char* kRow = "row";  // i32 [1]: token of the pass whose logits are wanted
constexpr int64_t kMaxPositions = std::numeric_limits<int32_t>::max() - kPrefill;

// The cache has rows for the padding of the last piece, which may lie beyond the model's last
// position; how many tokens there are was checked before.
nn::Decoder::Config without_length_limit(nn::Decoder::Config decoder) {
  for (auto& layer : decoder.layers) {
    auto* attention = layer->attention.as<nn::Attention::Config>();
    auto* latent = layer->attention.as<nn::LatentAttention::Config>();
    auto* rope = attention != nullptr ? attention->rope.as<nn::RopeFields>()
                 : latent != nullptr  ? latent->rope.as<nn::RopeFields>()
                                      : nullptr;
    if (rope != nullptr) rope->max_position_embeddings = 0;
  }
  return decoder;
}

// Tokens per pass over the prompt.
int64_t prefill_of(const nn::Decoder::Config& decoder) {
  for (const auto& layer : decoder.layers)
    if (layer->attention->one_token_at_a_time()) return 1;
  return kPrefill;
}

}  // namespace

struct Generator::Impl {
  const PublishedModel& model;
  nn::Decoder::Config decoder;
  int64_t max_tokens;  // prompt and new ones
  int64_t capacity;    // rows of the cache
  int64_t vocab_size;
  AlignedVector<int32_t> tokens, positions;
  AlignedVector<int32_t> row;
  AlignedVector<float> logits;  // of that row
  alignas(64) int32_t start = 0;
  std::optional<nn::RopeBuffers> ropes;  // of both graphs
  std::shared_ptr<void> cache_block;
  std::map<std::string, std::byte*> caches;                   // places in it
  int64_t piece;                                              // tokens per pass over the prompt
  std::unique_ptr<exec::cpu::CpuExecutable> prefill, decode;  // prefill: where piece is not 1

  Impl(const PublishedModel& m, int64_t tokens_wanted, ThreadPool& pool)
      : model(m),
        decoder(without_length_limit(m.decoder())),
        max_tokens(tokens_wanted),
        // Whole pieces of the prompt, so that its padding has rows too.
        capacity(round_up(tokens_wanted, kPrefill)),
        vocab_size(decoder.vocab_size()),
        tokens(kPrefill),
        positions(kPrefill),
        row(1),
        logits(static_cast<size_t>(vocab_size)),
        piece(prefill_of(decoder)) {
    const auto arena = exec::cpu::make_arena();
    if (piece > 1) prefill = build(piece, pool, arena);
    decode = build(1, pool, arena);
  }

  std::unique_ptr<exec::cpu::CpuExecutable> build(int64_t num_tokens, ThreadPool& pool,
                                                  const std::shared_ptr<exec::cpu::Arena>& arena) {
    ir::Graph traced;
    nn::Trace trace(traced, {.num_tokens = num_tokens, .seq_len = capacity, .cached = true});
    const ir::Value row_1 = traced.input(kRow, {DType::i32, {1}});
    traced.output("logits", nn::logits(trace, decoder, row_1));
    const ir::Graph graph = passes::simplify(traced);
    model.require_memory_of(graph, pool, fmt::format("text of {} tokens", max_tokens),
                            "ask for fewer tokens, or shorten the prompt");
    auto executable = exec::cpu::compile(graph, pool, arena, {.name = "generate"});
    if (!ropes) ropes.emplace(trace.rope_specs(), capacity);
    if (caches.empty()) place_caches(graph);
    for (const auto& input : graph.inputs())
      executable->bind_input(input.name, memory(input.name, graph.type(input.value)));
    executable->bind_output("logits", logits.data());
    return executable;
  }

  static bool is_cache(const std::string& name) { return name.starts_with("cache."); }

  // In one block: each block takes whole huge pages, and short texts have small caches.
  void place_caches(const ir::Graph& graph) {
    int64_t total = 0;
    std::map<std::string, int64_t> offsets;
    for (const auto& input : graph.inputs()) {
      if (!is_cache(input.name)) continue;
      offsets[input.name] = total;
      total += round_up(ir::byte_size(graph.type(input.value)), 64);
    }
    cache_block = exec::cpu::allocate_state(total);
    for (const auto& [name, offset] : offsets)
      caches[name] = static_cast<std::byte*>(cache_block.get()) + offset;
  }

  const void* memory(const std::string& name, const ir::Type& type) {
    if (name == nn::kTokens) return tokens.data();
    if (name == nn::kPositions) return positions.data();
    if (name == nn::kCacheStart) return &start;
    if (name == kRow) return row.data();
    if (const float* table = ropes->find(name)) return table;
    return is_cache(name) ? caches.at(name) : model.data(name, type);
  }

  // Logits of the last of `count` tokens at positions first, first + 1, ...
  const float* run(const int32_t* ids, int64_t count, int64_t first) {
    auto& executable = count == 1 ? *decode : *prefill;
    const int64_t padded = count == 1 ? 1 : kPrefill;
    for (int64_t i = 0; i < padded; ++i) {
      const auto at = static_cast<size_t>(i);
      tokens[at] =
          i < count ? ids[i] : 0;  // padding lands in rows that real tokens overwrite later
      positions[at] = static_cast<int32_t>(first + std::min(i, count - 1));
    }
    start = static_cast<int32_t>(first);
    row[0] = static_cast<int32_t>(count - 1);
    executable.run();
    return logits.data();
  }

  // All tokens from the first on, in pieces.
  const float* run_all(const std::vector<int32_t>& ids) {
    const auto length = static_cast<int64_t>(ids.size());
    const float* last = nullptr;
    for (int64_t first = 0; first < length; first += piece)
      last = run(ids.data() + first, std::min(piece, length - first), first);
    return last;
  }
};

Generator::Generator(const PublishedModel& model, int64_t capacity, ThreadPool& pool) {
  const int64_t positions = model.decoder().max_positions();
  const int64_t limit = positions > 0 ? positions : kMaxPositions;
  if (capacity < 1 || capacity > limit)
    throw Error(
        "{} tokens (prompt and new ones together) are asked for, the model has positions for {} "
        "({}); shorten the prompt or ask for fewer tokens",
        capacity, limit, positions > 0 ? "max_position_embeddings" : "as many as are counted");
  impl_ = std::make_unique<Impl>(model, capacity, pool);
}
Generator::~Generator() = default;

std::vector<int32_t> Generator::generate(const std::vector<int32_t>& prompt, int64_t max_new_tokens,
                                         const SamplingOptions& sampling,
                                         const std::vector<int32_t>& stop,
                                         const std::function<void(int32_t)>& on_token) {
  if (prompt.empty())
    throw Error("the prompt has no tokens and the tokenizer has no bos; give a prompt");
  const auto length = static_cast<int64_t>(prompt.size());
  if (max_new_tokens < 0 || max_new_tokens > impl_->max_tokens - length)
    throw Error("{} prompt tokens and {} new ones exceed the cache of {}", length, max_new_tokens,
                impl_->max_tokens);
  for (const int32_t id : prompt) {
    if (id < 0 || id >= impl_->vocab_size)
      throw Error("prompt token {} is outside the vocabulary [0, {})", id, impl_->vocab_size);
  }
  std::vector<int32_t> ids = prompt;
  impl_->ropes->fill(length);
  const float* logits = impl_->run_all(ids);
  std::vector<int32_t> made;
  for (int64_t i = 0; i < max_new_tokens; ++i) {
    const int32_t id = sample_token(logits, impl_->vocab_size, sampling, static_cast<uint64_t>(i));
    made.push_back(id);
    if (on_token) on_token(id);
    if (std::find(stop.begin(), stop.end(), id) != stop.end()) break;
    if (i + 1 == max_new_tokens) break;
    ids.push_back(id);
    // Tables that grow with the length turn the tokens to come, as Transformers does; keys in the
    // cache keep theirs.
    const bool stale = impl_->ropes->fill(length + i + 1);
    logits = stale ? impl_->run_all(ids) : impl_->run(&id, 1, length + i);
  }
  return made;
}

int32_t sample_token(const float* logits, int64_t vocab_size, const SamplingOptions& sampling,
                     uint64_t index) {
  const auto* nan =
      std::find_if(logits, logits + vocab_size, [](float logit) { return std::isnan(logit); });
  if (nan != logits + vocab_size)
    throw ExitError(ExitCode::non_finite,
                    fmt::format("the logit of token {} is not a number at new token {}: the "
                                "weights or the config.json of the model are damaged",
                                nan - logits, index));
  if (sampling.temperature <= 0)
    return static_cast<int32_t>(std::max_element(logits, logits + vocab_size) - logits);
  std::vector<int32_t> order(static_cast<size_t>(vocab_size));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  if (sampling.top_k > 0) order.resize(static_cast<size_t>(std::min(sampling.top_k, vocab_size)));
  std::vector<double> weights;
  double sum = 0;
  for (const int32_t id : order) {
    weights.push_back(
        std::exp(static_cast<double>(logits[id] - logits[order[0]]) / sampling.temperature));
    sum += weights.back();
  }
  double kept = 0;
  size_t count = 0;
  while (count < weights.size() && (count == 0 || kept < sampling.top_p * sum))
    kept += weights[count++];
  double draw = rng_uniform(rng_key(sampling.seed, "generate"), index) * kept;
  for (size_t i = 0; i < count; ++i) {
    draw -= weights[i];
    if (draw < 0) return order[i];
  }
  return order[count - 1];
}

}  // namespace rhea
