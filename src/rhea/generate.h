// rhea generate: text from a published model folder, token by token over a key-value cache.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rhea/base/thread_pool.h"
#include "rhea/published_model.h"

namespace rhea {

struct SamplingOptions {
  double temperature = 0;  // 0: the most likely token, ties to the lower id
  int64_t top_k = 0;       // 0: all
  double top_p = 1;        // smallest set of tokens whose probabilities reach it
  uint64_t seed = 0;
};

class Generator {
 public:
  // `capacity`: prompt and new tokens together. Throws Error where the model's positions do not
  // reach so far, or int32 does not, and for a model that was not read as f32, in which it
  // computes.
  Generator(const PublishedModel& model, int64_t capacity, ThreadPool& pool);
  ~Generator();

  // Continues `prompt` (not empty) by up to `max_new_tokens`; ends after `stop`. on_token is called
  // with each new id.
  std::vector<int32_t> generate(const std::vector<int32_t>& prompt, int64_t max_new_tokens,
                                const SamplingOptions& sampling, const std::vector<int32_t>& stop,
                                const std::function<void(int32_t)>& on_token = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The next token from logits [V]; `index` numbers the draws of one seed.
int32_t sample_token(const float* logits, int64_t vocab_size, const SamplingOptions& sampling,
                     uint64_t index);

}  // namespace rhea
