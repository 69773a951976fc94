// rhea eval: how well a model predicts a text, per token and per byte.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "rhea/base/dtype.h"
#include "rhea/base/thread_pool.h"

namespace rhea {

struct EvalOptions {
  std::filesystem::path model;      // folder with config.json and safetensors, or step-N of a run
  std::filesystem::path tokenizer;  // empty: the model's
  std::string dataset = "debug_text_validation";
  std::optional<std::string> dataset_path;
  std::string text_field = "text";
  bool whole_files = false;   // data set `text`: a document is a file
  int64_t max_documents = 0;  // 0: all
  int64_t seq_len = 1024;     // tokens that the model sees at once
  // A document longer than seq_len is read in windows that begin this many tokens apart; each token
  // is predicted in the first window that reaches it. Small: more context, more work. 0: seq_len.
  int64_t stride = 0;
  DType dtype = DType::f32;  // of the weights in memory and of the computation
};

struct EvalResult {
  int64_t num_documents = 0;
  int64_t num_bytes = 0;   // of the texts
  int64_t num_tokens = 0;  // predicted: all but the first of each document
  double loss = 0;         // sum of -ln p over them

  double loss_per_token() const;
  double perplexity_per_token() const;
  double perplexity_per_byte() const;
  double bits_per_byte() const;
};

// Documents are tokenised as for training (bos and eos as the tokenizer's files say) and predicted
// one by one: nothing of one is seen by the next. Throws Error naming the option, file or document
// at fault, and where there is nothing to predict.
EvalResult evaluate(const EvalOptions& options, ThreadPool& pool);

}  // namespace rhea
