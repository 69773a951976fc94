// For tests: a tiny Qwen3 in some variant, trained on one batch, and everything that it leaves.
#pragma once
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "rhea/components/train_step/train_step.h"
#include "rhea/models/qwen3/qwen3.h"

namespace rhea::train_step {

inline constexpr int64_t kSmallSeqLen = 32, kSmallTokens = 64, kSmallVocab = 96;

inline nn::Decoder::Config small_model(bool tied = false, bool fused = true) {
  nn::CosSinRoPE::Config rope;
  rope.dim = 16;
  rope.max_position_embeddings = kSmallSeqLen;
  return models::qwen3::build({.dim = 32,
                               .n_layers = 2,
                               .n_heads = 4,
                               .n_kv_heads = 2,
                               .head_dim = 16,
                               .hidden_dim = 48,
                               .vocab_size = kSmallVocab,
                               .tied = tied,
                               .fuse_qkv = fused},
                              rope);
}

inline StepOptions small_options(DType compute = DType::f32, int64_t num_loss_chunks = 4) {
  StepOptions options;
  options.trace = {.num_tokens = kSmallTokens, .seq_len = kSmallSeqLen, .compute_dtype = compute};
  ChunkedLossConfig chunked;
  chunked.num_chunks = num_loss_chunks;
  if (num_loss_chunks > 0)
    options.loss = chunked;
  else
    options.loss = CrossEntropyLossConfig{};
  options.accumulates = true;
  options.validates = true;
  options.optimizer->param_groups = {ParamGroup()};
  return options;
}

using Tensors = std::map<std::string, std::string>;  // name -> bytes

inline std::vector<float> as_floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

struct Trained {
  std::vector<double> losses;            // of every microbatch, then of the validation
  double norm = 0;                       // of the first step
  Tensors start, gradients, end, state;  // parameters, frozen ones too; gradients of the first step
  StepMemory memory;
};

// `steps` updates, of two microbatches where the options let them accumulate.
inline Trained train(const nn::Decoder::Config& model, const StepOptions& options, int steps = 2) {
  const auto add = [](Tensors& to, std::span<const StateTensor> tensors) {
    for (const auto& tensor : tensors)
      to[tensor.name] = {static_cast<const char*>(tensor.data),
                         static_cast<size_t>(ir::byte_size(tensor.type))};
  };
  ThreadPool pool(2);
  TrainStep step(build_step_graphs(model, options), options.trace, {}, pool);
  step.initialise(3);
  Trained result;
  result.memory = step.memory();
  add(result.start, step.parameters());
  add(result.start, step.frozen());
  std::vector<int32_t> tokens(kSmallTokens), labels(kSmallTokens), positions(kSmallTokens);
  for (size_t t = 0; t < kSmallTokens; ++t) {
    tokens[t] = static_cast<int32_t>(t * 37 % kSmallVocab);
    labels[t] = static_cast<int32_t>((t * 53 + 7) % kSmallVocab);
    positions[t] = static_cast<int32_t>(t % kSmallSeqLen);
  }
  const Batch batch{tokens.data(), labels.data(), positions.data()};
  for (int k = 1; k <= steps; ++k) {
    for (int microbatch = 0; microbatch < (options.accumulates ? 2 : 1); ++microbatch)
      result.losses.push_back(step.forward_backward(batch, 0.5 / kSmallTokens));
    const double norm = step.gradient_norm();
    if (k == 1) {
      result.norm = norm;
      add(result.gradients, step.gradients());
    }
    step.update(k, std::vector<double>{1e-2}, 1);
  }
  result.losses.push_back(step.evaluate(batch, 0.5 / kSmallTokens));
  add(result.end, step.parameters());
  add(result.end, step.frozen());
  add(result.state, step.optimizer_state());
  return result;
}

}  // namespace rhea::train_step
