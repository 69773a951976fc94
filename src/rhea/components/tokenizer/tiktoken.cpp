#include "rhea/components/tokenizer/tiktoken.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/components/tokenizer/base64.h"
#include "rhea/components/tokenizer/cut_patterns.h"
#include "rhea/components/tokenizer/json_fields.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {
namespace {

using Ranks = std::unordered_map<std::string, int32_t>;

constexpr const char* kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(" \t\r\n", at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::optional<int32_t> parse_rank(std::string_view word) {
  int32_t rank = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), rank);
  constexpr int32_t kMost = 1 << 22;
  if (error != std::errc() || end != word.data() + word.size() || rank < 0 || rank > kMost)
    return std::nullopt;
  return rank;
}

void add(Ranks& ranks, std::string_view base64, int32_t rank, const std::string& where) {
  const auto bytes = decode_base64(base64);
  if (!bytes || bytes->empty()) throw Error("{}: \"{}\" is not base64", where, base64);
  if (!ranks.emplace(*bytes, rank).second)
    throw Error("{}: the bytes \"{}\" have two ranks", where, base64);
}

// Lines "base64 rank".
Ranks read_lines(std::string_view text, const std::string& name) {
  Ranks ranks;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const auto words = words_of(text.substr(at, end - at));
    at = end + 1;
    ++number;
    if (words.empty()) continue;
    const std::string where = name + ":" + std::to_string(number);
    const auto rank = words.size() == 2 ? parse_rank(words[1]) : std::nullopt;
    if (!rank) throw Error("{}: expected \"base64 rank\" with a rank in [0, 2^22]", where);
    add(ranks, words[0], *rank, where);
  }
  return ranks;
}

// Lines "! first-rank base64 base64 ...".
Ranks read_packed(const JsonField& field) {
  Ranks ranks;
  int32_t rank = 0;
  const auto words = words_of(field.string());
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] != "!") {
      add(ranks, words[i], rank++, field.where());
      continue;
    }
    const auto first = i + 1 < words.size() ? parse_rank(words[i + 1]) : std::nullopt;
    if (!first) field.fail("\"!\" must be followed by a rank");
    rank = *first;
    ++i;
  }
  return ranks;
}

// All ways to make an entry of two others; of one entry, those of the lower parts first.
Json merges_of(const Ranks& ranks) {
  std::vector<std::tuple<int32_t, int32_t, int32_t, const std::string*, size_t>> found;
  for (const auto& [bytes, rank] : ranks)
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
      const auto left = ranks.find(bytes.substr(0, cut));
      if (left == ranks.end()) continue;
      const auto right = ranks.find(bytes.substr(cut));
      if (right != ranks.end()) found.emplace_back(rank, left->second, right->second, &bytes, cut);
    }
  std::sort(found.begin(), found.end());
  Json merges = Json::array();
  for (const auto& entry : found) {
    const std::string& bytes = *std::get<3>(entry);
    const size_t cut = std::get<4>(entry);
    merges.push_back({bytes_to_alphabet(std::string_view(bytes).substr(0, cut)),
                      bytes_to_alphabet(std::string_view(bytes).substr(cut))});
  }
  return merges;
}

Json split_by(const std::string& pattern) {
  return {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}},
            {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
}

Json cuts_by_name(std::string name) {
  name = name.substr(name.find_last_of('/') + 1);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  Json cuts;
  if (has("o200k")) return split_by(kO200kPattern);
  if (has("r50k") || has("p50k") || has("gpt2")) {
    cuts = pre_tokenizer_json(CutPattern::gpt2);
  } else {
    cuts = pre_tokenizer_json(has("qwen") ? CutPattern::qwen : CutPattern::llama3);
  }
  return cuts;
}

}  // namespace

bool is_tiktoken(std::string_view text) {
  if (text.starts_with("{")) return text.substr(0, 4096).find("\"bpe_ranks\"") != std::string::npos;
  const auto words = words_of(text.substr(0, std::min(text.find('\n'), text.size())));
  return words.size() == 2 && decode_base64(words[0]).has_value() && parse_rank(words[1]);
}

Json tiktoken_to_json(std::string_view text, const std::string& name) {
  Ranks ranks;
  Json cuts = cuts_by_name(name);
  Json added = Json::array();
  if (text.starts_with("{")) {
    const Json json = parse_json(text, name);
    const JsonField root(json, name + ": ");
    ranks = read_packed(root["bpe_ranks"]);
    if (!root["pat_str"].is_null()) cuts = split_by(root["pat_str"].string());
    const JsonField specials = root["special_tokens"];
    if (!specials.is_null())
      for (const auto& [content, id] : specials.object().items())
        added.push_back({{"id", JsonField(id, specials.where() + "." + content).id()},
                         {"content", content},
                         {"special", true}});
  } else {
    ranks = read_lines(text, name);
  }
  if (ranks.empty()) throw Error("{}: no entries", name);
  Json vocab = Json::object();
  for (const auto& [bytes, rank] : ranks) vocab[bytes_to_alphabet(bytes)] = rank;
  return {{"added_tokens", std::move(added)},
          {"pre_tokenizer", std::move(cuts)},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"},
            {"ignore_merges", true},
            {"vocab", std::move(vocab)},
            {"merges", merges_of(ranks)}}}};
}

}  // namespace rhea::tokenizer
