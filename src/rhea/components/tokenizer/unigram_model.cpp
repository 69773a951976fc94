// The best way through a text (Viterbi's algorithm), from front to back.
#include "rhea/components/tokenizer/unigram_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {
namespace {

// What an unknown character costs beyond the least likely entry.
constexpr double kUnknownPenalty = 10;

}  // namespace

UnigramModel::UnigramModel(const JsonField& field) {
  const JsonField vocab = field["vocab"];
  const size_t count = vocab.array().size();
  if (count == 0) vocab.fail("a Unigram model needs at least one entry");
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < count; ++i) {
    const JsonField entry = vocab.item(i);
    if (entry.array().size() != 2 || !entry.value()[1].is_number())
      entry.fail("expected [piece, score]");
    vocabulary_.append(entry.item(0).string());
    scores_.push_back(entry.value()[1].get<double>());
    least = std::min(least, scores_.back());
  }
  unknown_score_ = least - kUnknownPenalty;
  if (!field["unk_id"].is_null()) {
    unknown_id_ = field["unk_id"].id();
    if (static_cast<size_t>(unknown_id_) >= count)
      field["unk_id"].fail(fmt::format("{} is beyond the {} entries", unknown_id_, count));
  }
  byte_fallback_ = field["byte_fallback"].boolean_or(false);
  for (int byte = 0; byte < 256; ++byte)
    byte_ids_[byte] = vocabulary_.find(fmt::format("<0x{:02X}>", byte));
  build_trie();
}

void UnigramModel::build_trie() {
  size_t num_bytes = 0;
  vocabulary_.for_each([&](const std::string& token, int32_t) { num_bytes += token.size(); });
  children_.reserve(num_bytes);
  std::fill(std::begin(roots_), std::end(roots_), -1);
  vocabulary_.for_each([&](const std::string& token, int32_t id) {
    int32_t node = -1;
    for (size_t i = 0; i < token.size(); ++i) {
      const auto byte = static_cast<unsigned char>(token[i]);
      int32_t child = i == 0 ? roots_[byte] : children_.find(node, byte).id;
      if (child < 0) {
        child = narrow<int32_t>(entries_.size());
        entries_.push_back(-1);
        if (i == 0) {
          roots_[byte] = child;
        } else {
          children_.insert(node, byte, {0, child});
        }
      }
      node = child;
    }
    if (node >= 0) entries_[static_cast<size_t>(node)] = id;
  });
}

template <class F>
void UnigramModel::for_each_prefix(std::string_view piece, size_t at, F&& f) const {
  int32_t node = roots_[static_cast<unsigned char>(piece[at])];
  while (node >= 0) {
    ++at;
    if (const int32_t id = entries_[static_cast<size_t>(node)]; id >= 0) f(at, id);
    if (at == piece.size()) return;
    node = children_.find(node, static_cast<unsigned char>(piece[at])).id;
  }
}

void UnigramModel::encode(std::string_view piece, Scratch& scratch,
                          std::vector<int32_t>& ids) const {
  auto& steps = scratch.steps;
  steps.assign(piece.size() + 1, {});
  for (size_t at = 0; at < piece.size();) {
    const double score_so_far = steps[at].score;
    const auto offer = [&](size_t end, double score, int32_t id) {
      Scratch::Step& step = steps[end];
      // Of equals the first one stays.
      if (step.begin >= 0 && score <= step.score) return;
      step = {score, narrow<int32_t>(at), id};
    };
    const size_t next = at + decode_code_point(piece, at).length;
    bool covered = false;  // by an entry of this one character
    for_each_prefix(piece, at, [&](size_t end, int32_t id) {
      offer(end, scores_[static_cast<size_t>(id)] + score_so_far, id);
      covered = covered || end == next;
    });
    if (!covered) {
      if (unknown_id_ < 0)
        throw Error("the Unigram model has no entry for \"{}\" and no unknown token",
                    piece.substr(at, next - at));
      offer(next, unknown_score_ + score_so_far, unknown_id_);
    }
    at = next;
  }
  auto& reversed = scratch.reversed;
  reversed.clear();
  for (size_t end = piece.size(); end > 0;) {
    int32_t id = steps[end].id;
    auto begin = static_cast<size_t>(steps[end].begin);
    // Neighbouring unknown characters are one unknown token.
    while (id == unknown_id_ && begin > 0 && steps[begin].id == unknown_id_)
      begin = static_cast<size_t>(steps[begin].begin);
    push_reversed(piece.substr(begin, end - begin), id, reversed);
    end = begin;
  }
  ids.insert(ids.end(), reversed.rbegin(), reversed.rend());
}

void UnigramModel::push_reversed(std::string_view text, int32_t id,
                                 std::vector<int32_t>& reversed) const {
  if (id == unknown_id_) {
    const int32_t known = vocabulary_.find(text);
    const auto has_byte = [&](char byte) {
      return byte_ids_[static_cast<unsigned char>(byte)] >= 0;
    };
    if (known >= 0) {
      id = known;
    } else if (byte_fallback_ && std::all_of(text.begin(), text.end(), has_byte)) {
      for (auto byte = text.rbegin(); byte != text.rend(); ++byte)
        reversed.push_back(byte_ids_[static_cast<unsigned char>(*byte)]);
      return;
    }
  }
  reversed.push_back(id);
}

std::string UnigramModel::description() const { return "Unigram"; }

}  // namespace rhea::tokenizer
