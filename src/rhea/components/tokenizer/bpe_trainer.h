// Learning a byte-level BPE vocabulary from text, and writing it as Hugging Face files.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rhea::tokenizer {

// How text is cut into words before pairs are counted; the tokenizer then cuts the same way.
enum class CutPattern { gpt2, llama3, qwen };
CutPattern parse_cut_pattern(std::string_view name);

struct BpeTrainerOptions {
  // Bytes, merged entries and special tokens together. Fewer come out where the text has no further
  // pair.
  int64_t vocab_size = 2048;
  // Pairs seen fewer times are not merged.
  int64_t min_frequency = 2;
  CutPattern pattern = CutPattern::llama3;
  // They get the last ids, in this order.
  std::vector<std::string> special_tokens;
};

struct TrainedBpe {
  std::vector<std::string> tokens;  // by id, in the byte alphabet: 256 bytes, then what merges gave
  std::vector<std::pair<int32_t, int32_t>> merges;
};

// The most frequent pair of neighbours is merged, again and again; among equally frequent ones that
// of the lower left, then the lower right id. The result is a function of the counts of words
// alone, not of the order of documents.
class BpeTrainer {
 public:
  // Throws Error where the vocabulary has no room for the bytes and special tokens.
  explicit BpeTrainer(BpeTrainerOptions options);
  ~BpeTrainer();
  // Counts the words of one document (UTF-8).
  void add(std::string_view text);
  TrainedBpe train() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What the files say beside the vocabulary.
struct TokenizerFileOptions {
  CutPattern pattern = CutPattern::llama3;
  std::vector<std::string> special_tokens;
  std::string bos_token, eos_token,
      pad_token;  // of special_tokens, or empty. The post-processor adds bos
  std::string chat_template;
};

// tokenizer.json and tokenizer_config.json as text; the same input gives the same bytes.
std::string format_tokenizer_json(const TrainedBpe& bpe, const TokenizerFileOptions& options);
std::string format_tokenizer_config(const TrainedBpe& bpe, const TokenizerFileOptions& options);

}  // namespace rhea::tokenizer
