// Byte-pair training: counts of pairs are kept up to date word by word instead of being counted
// again.
#include "rhea/components/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/cut_patterns.h"
#include "rhea/components/tokenizer/pre_tokenizer.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {
namespace {

constexpr int64_t kNumBytes = 256;

struct Word {
  std::vector<int32_t> symbols;
  int64_t count = 0;
};

using Pair = std::pair<int32_t, int32_t>;
uint64_t key_of(Pair pair) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(pair.first)) << 32) |
         static_cast<uint32_t>(pair.second);
}

struct PairEntry {
  int64_t count = 0;
  std::vector<size_t> words;  // where the pair is or was
};

struct Candidate {
  int64_t count = 0;
  Pair pair;
  // Of two, the one merged later.
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Training {
 public:
  Training(const std::map<std::string, int64_t>& counts, int64_t num_entries, int64_t min_frequency)
      : num_entries_(num_entries), min_frequency_(min_frequency) {
    add_bytes();
    for (const auto& [text, count] : counts) {
      Word word;
      word.count = count;
      for (const char byte : text)
        word.symbols.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
      words_.push_back(std::move(word));
    }
    for (size_t i = 0; i < words_.size(); ++i)
      for (size_t k = 0; k + 1 < words_[i].symbols.size(); ++k)
        change({words_[i].symbols[k], words_[i].symbols[k + 1]}, words_[i].count, i);
    for (const auto& [key, entry] : pairs_)
      queue_.push({entry.count,
                   {static_cast<int32_t>(key >> 32), static_cast<int32_t>(key & 0xffffffffU)}});
  }

  TrainedBpe run() {
    while (static_cast<int64_t>(result_.tokens.size()) < num_entries_ && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const int64_t count = pairs_[key_of(best.pair)].count;
      if (count != best.count) {
        // Merges since it was queued took some of its places.
        if (count > 0) queue_.push({count, best.pair});
        continue;
      }
      if (count < min_frequency_) break;
      merge(best.pair);
    }
    return std::move(result_);
  }

 private:
  // Ids of single bytes follow the order of their characters in the alphabet.
  void add_bytes() {
    std::vector<std::pair<char32_t, int>> characters;
    for (int byte = 0; byte < kNumBytes; ++byte)
      characters.emplace_back(byte_to_char(static_cast<uint8_t>(byte)), byte);
    std::sort(characters.begin(), characters.end());
    for (const auto& [character, byte] : characters) {
      byte_ids_[static_cast<size_t>(byte)] = static_cast<int32_t>(result_.tokens.size());
      append_utf8(result_.tokens.emplace_back(), character);
      ids_.emplace(result_.tokens.back(), byte_ids_[static_cast<size_t>(byte)]);
    }
  }

  void change(Pair pair, int64_t count, size_t word) {
    PairEntry& entry = pairs_[key_of(pair)];
    entry.count += count;
    if (count > 0 && (entry.words.empty() || entry.words.back() != word))
      entry.words.push_back(word);
  }

  void merge(Pair pair) {
    const std::string token = result_.tokens[static_cast<size_t>(pair.first)] +
                              result_.tokens[static_cast<size_t>(pair.second)];
    // Two ways can lead to the same text ("a bc" and "ab c"): one entry, two merges.
    const auto [entry, is_new] = ids_.emplace(token, static_cast<int32_t>(result_.tokens.size()));
    if (is_new) result_.tokens.push_back(token);
    const int32_t id = entry->second;
    result_.merges.push_back(pair);
    std::vector<size_t> words = std::move(pairs_[key_of(pair)].words);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    grown_.clear();
    for (const size_t word : words) merge_in_word(pair, id, word);
    std::sort(grown_.begin(), grown_.end());
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (const Pair& grown : grown_)
      if (const int64_t count = pairs_[key_of(grown)].count; count > 0) queue_.push({count, grown});
  }

  void merge_in_word(Pair pair, int32_t id, size_t index) {
    Word& word = words_[index];
    std::vector<int32_t>& symbols = word.symbols;
    for (size_t at = 0; at + 1 < symbols.size(); ++at) {
      if (symbols[at] != pair.first || symbols[at + 1] != pair.second) continue;
      if (at > 0) {
        change({symbols[at - 1], pair.first}, -word.count, index);
        grow({symbols[at - 1], id}, word.count, index);
      }
      symbols[at] = id;
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      if (at + 1 < symbols.size()) {
        change({pair.second, symbols[at + 1]}, -word.count, index);
        grow({id, symbols[at + 1]}, word.count, index);
      }
    }
  }

  void grow(Pair pair, int64_t count, size_t word) {
    change(pair, count, word);
    grown_.push_back(pair);
  }

  int64_t num_entries_;
  int64_t min_frequency_;
  std::array<int32_t, kNumBytes> byte_ids_{};
  std::vector<Word> words_;
  std::unordered_map<uint64_t, PairEntry> pairs_;
  std::unordered_map<std::string, int32_t> ids_;
  std::priority_queue<Candidate> queue_;
  std::vector<Pair> grown_;  // pairs that the running merge made
  TrainedBpe result_;
};

}  // namespace

CutPattern parse_cut_pattern(std::string_view name) {
  if (name == "gpt2") return CutPattern::gpt2;
  if (name == "llama3") return CutPattern::llama3;
  if (name == "qwen") return CutPattern::qwen;
  throw Error("pattern {}: must be one of gpt2, llama3, qwen", name);
}

struct BpeTrainer::Impl {
  explicit Impl(BpeTrainerOptions o)
      : options(std::move(o)),
        pre_tokenizer(JsonField(pre_tokenizer_json(options.pattern), "pre_tokenizer")) {}
  BpeTrainerOptions options;
  PreTokenizer pre_tokenizer;
  PreTokenizer::Scratch scratch;
  std::map<std::string, int64_t> counts;
};

BpeTrainer::BpeTrainer(BpeTrainerOptions options) {
  const int64_t least = kNumBytes + static_cast<int64_t>(options.special_tokens.size());
  if (options.vocab_size < least)
    throw Error("vocab_size = {}: 256 bytes and {} special tokens need at least {}",
                options.vocab_size, options.special_tokens.size(), least);
  impl_ = std::make_unique<Impl>(std::move(options));
}
BpeTrainer::~BpeTrainer() = default;

void BpeTrainer::add(std::string_view text) {
  if (const size_t bad = find_invalid_utf8(text); bad != std::string_view::npos)
    throw Error("text to train on is not UTF-8: bad byte 0x{:02X} at offset {} of {}",
                static_cast<unsigned char>(text[bad]), bad, text.size());
  if (text.empty()) return;
  std::string copy(text);
  impl_->pre_tokenizer.split(copy, impl_->scratch);
  for (const Range& piece : impl_->scratch.pieces)
    if (piece.begin < piece.end) ++impl_->counts[copy.substr(piece.begin, piece.end - piece.begin)];
}

TrainedBpe BpeTrainer::train() const {
  const auto num_special = static_cast<int64_t>(impl_->options.special_tokens.size());
  return Training(impl_->counts, impl_->options.vocab_size - num_special,
                  impl_->options.min_frequency)
      .run();
}

}  // namespace rhea::tokenizer
