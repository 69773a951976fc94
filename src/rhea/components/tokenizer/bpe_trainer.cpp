// Byte-pair training: counts of pairs are kept up to date word by word instead of being counted
// again.
#include "rhea/components/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/cut_patterns.h"
#include "rhea/components/tokenizer/pre_tokenizer.h"
#include "rhea/components/tokenizer/utf8.h"
#include "rhea/components/tokenizer/vocabulary.h"

namespace rhea::tokenizer {
namespace {

constexpr int64_t kNumBytes = 256;

using WordCounts = std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>>;

struct Word {
  std::vector<int32_t> symbols;
  int64_t count = 0;
};

using Pair = std::pair<int32_t, int32_t>;
uint64_t key_of(Pair pair) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(pair.first)) << 32) |
         static_cast<uint32_t>(pair.second);
}
Pair pair_of(uint64_t key) {
  return {static_cast<int32_t>(key >> 32), static_cast<int32_t>(key & 0xffffffffU)};
}

// A pair to merge, in the words where it stood when it was queued. One pair can be queued twice:
// "abc" may come about as "a bc" and as "ab c", each of which makes new neighbours of it.
struct Candidate {
  int64_t count = 0;
  Pair pair;
  std::vector<uint32_t> words;
  // Of two, the one merged later.
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Training {
 public:
  Training(const WordCounts& counts, int64_t num_entries, int64_t min_frequency)
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
        grow({words_[i].symbols[k], words_[i].symbols[k + 1]}, words_[i].count,
             static_cast<uint32_t>(i));
    queue_grown();
  }

  TrainedBpe run() {
    while (static_cast<int64_t>(result_.tokens.size()) < num_entries_ && !queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end());
      Candidate best = std::move(queue_.back());
      queue_.pop_back();
      const int64_t count = counts_[key_of(best.pair)];
      if (count != best.count) {
        // Merges since it was queued took some of its places.
        best.count = count;
        if (count > 0) push(std::move(best));
        continue;
      }
      if (count < min_frequency_) break;
      merge(best);
    }
    drop_repeated_merges();
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

  void push(Candidate candidate) {
    queue_.push_back(std::move(candidate));
    std::push_heap(queue_.begin(), queue_.end());
  }

  void merge(const Candidate& best) {
    const std::string token = result_.tokens[static_cast<size_t>(best.pair.first)] +
                              result_.tokens[static_cast<size_t>(best.pair.second)];
    const auto [entry, is_new] = ids_.emplace(token, static_cast<int32_t>(result_.tokens.size()));
    if (is_new) result_.tokens.push_back(token);
    const int32_t id = entry->second;
    result_.merges.push_back(best.pair);
    for (const uint32_t word : best.words) merge_in_word(best.pair, id, word);
    queue_grown();
  }

  void merge_in_word(Pair pair, int32_t id, uint32_t index) {
    Word& word = words_[index];
    std::vector<int32_t>& symbols = word.symbols;
    size_t end = 0;  // of the symbols that are done, in place
    for (size_t at = 0; at < symbols.size(); ++at) {
      if (at + 1 == symbols.size() || symbols[at] != pair.first || symbols[at + 1] != pair.second) {
        symbols[end++] = symbols[at];
        continue;
      }
      if (end > 0) {
        counts_[key_of({symbols[end - 1], pair.first})] -= word.count;
        grow({symbols[end - 1], id}, word.count, index);
      }
      symbols[end++] = id;
      ++at;
      if (at + 1 < symbols.size()) {
        counts_[key_of({pair.second, symbols[at + 1]})] -= word.count;
        grow({id, symbols[at + 1]}, word.count, index);
      }
    }
    symbols.resize(end);
  }

  void grow(Pair pair, int64_t count, uint32_t word) {
    const uint64_t key = key_of(pair);
    counts_[key] += count;
    std::vector<uint32_t>& words = grown_[key];
    if (words.empty() || words.back() != word) words.push_back(word);
  }

  // Pairs that the last merge made become candidates.
  void queue_grown() {
    for (auto& [key, words] : grown_)
      if (const int64_t count = counts_[key]; count > 0)
        push({count, pair_of(key), std::move(words)});
    grown_.clear();
  }

  // Of a merge that came twice the later one counts.
  void drop_repeated_merges() {
    std::unordered_set<uint64_t> seen;
    std::vector<Pair> kept;
    for (auto pair = result_.merges.rbegin(); pair != result_.merges.rend(); ++pair)
      if (seen.insert(key_of(*pair)).second) kept.push_back(*pair);
    result_.merges.assign(kept.rbegin(), kept.rend());
  }

  int64_t num_entries_;
  int64_t min_frequency_;
  std::array<int32_t, kNumBytes> byte_ids_{};
  std::vector<Word> words_;
  std::unordered_map<uint64_t, int64_t> counts_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> grown_;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<Candidate> queue_;  // a heap
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
        pre_tokenizer(JsonField(pre_tokenizer_json(options.pattern), "pre_tokenizer")) {
    pre_tokenizer.keep_bytes();
  }
  BpeTrainerOptions options;
  PreTokenizer pre_tokenizer;
  PreTokenizer::Scratch scratch;
  WordCounts counts;
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
  impl_->pre_tokenizer.split(copy, /*at_start=*/true, impl_->scratch);
  for (const Range& piece : impl_->scratch.pieces) {
    const auto word = std::string_view(copy).substr(piece.begin, piece.end - piece.begin);
    const auto found = impl_->counts.find(word);
    if (found != impl_->counts.end()) {
      ++found->second;
    } else {
      impl_->counts.emplace(word, 1);
    }
  }
}

TrainedBpe BpeTrainer::train() const {
  const auto num_special = static_cast<int64_t>(impl_->options.special_tokens.size());
  return Training(impl_->counts, impl_->options.vocab_size - num_special,
                  impl_->options.min_frequency)
      .run();
}

}  // namespace rhea::tokenizer
