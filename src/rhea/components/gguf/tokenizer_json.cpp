// The tokenizer of a GGUF file as tokenizer.json and tokenizer_config.json.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/components/gguf/architecture.h"
#include "rhea/components/gguf/published.h"

namespace rhea::gguf {
namespace {

using Json = nlohmann::ordered_json;

// Kinds in tokenizer.ggml.token_type.
constexpr int64_t kControl = 3, kUserDefined = 4, kUnused = 5;
constexpr const char* kSpace = "\u2581";  // how sentencepiece spells a space

struct Vocabulary {
  const std::vector<std::string>* tokens = nullptr;
  const std::vector<int64_t>* kinds = nullptr;  // null: all normal
  const std::vector<double>* scores = nullptr;

  int64_t kind(size_t id) const { return kinds == nullptr ? 1 : (*kinds)[id]; }
};

Vocabulary vocabulary_of(const File& file) {
  Vocabulary made{file.texts("tokenizer.ggml.tokens"), file.integers("tokenizer.ggml.token_type"),
                  file.numbers("tokenizer.ggml.scores")};
  if (made.tokens == nullptr)
    throw Error("{}: the metadata has no tokenizer.ggml.tokens", file.path().string());
  const auto check = [&](const auto* list, const char* key) {
    if (list != nullptr && list->size() != made.tokens->size())
      throw Error("{}: {} has {} entries for {} tokens", file.path().string(), key, list->size(),
                  made.tokens->size());
  };
  check(made.kinds, "tokenizer.ggml.token_type");
  check(made.scores, "tokenizer.ggml.scores");
  return made;
}

Json vocab_json(const File& file, const Vocabulary& vocabulary) {
  Json vocab = Json::object();
  std::unordered_map<std::string_view, size_t> seen;
  for (size_t id = 0; id < vocabulary.tokens->size(); ++id) {
    const std::string& token = (*vocabulary.tokens)[id];
    if (vocabulary.kind(id) == kUnused) continue;
    if (const auto [first, is_new] = seen.emplace(token, id); !is_new)
      throw Error("{}: tokens {} and {} are both '{}'", file.path().string(), first->second, id,
                  token);
  }
  // A map that keeps its order compares every key on insertion; these are known to differ.
  auto& entries = vocab.get_ref<Json::object_t&>();
  for (size_t id = 0; id < vocabulary.tokens->size(); ++id)
    if (vocabulary.kind(id) != kUnused)
      entries.emplace_back((*vocabulary.tokens)[id], static_cast<int64_t>(id));
  return vocab;
}

Json added_tokens(const Vocabulary& vocabulary) {
  Json list = Json::array();
  for (size_t id = 0; id < vocabulary.tokens->size(); ++id) {
    const int64_t kind = vocabulary.kind(id);
    if (kind != kControl && kind != kUserDefined) continue;
    list.push_back({{"id", id},
                    {"content", (*vocabulary.tokens)[id]},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", kind == kControl}});
  }
  return list;
}

// --- byte-level BPE

constexpr const char* kLlama3Cut =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Cut =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekkenCut =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kGpt4oCut =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// How text is cut before merging. Null `cut`: GPT-2's rule, which the ByteLevel step has built in.
struct Cut {
  std::string_view name;  // tokenizer.ggml.pre
  const char* cut = nullptr;
  bool single_digits = false;
  bool whole_words = false;  // a word that is an entry is not merged
  bool nfc = false;
  bool begin_of_text = false;  // added unless the file says otherwise
};

constexpr std::array kCuts = {
    Cut{.name = "gpt-2"},
    Cut{.name = "mpt"},
    Cut{.name = "olmo"},
    Cut{.name = "dolma"},
    Cut{.name = "smollm", .single_digits = true},
    Cut{.name = "starcoder", .single_digits = true},
    Cut{.name = "refact", .single_digits = true},
    Cut{.name = "command-r", .single_digits = true},
    Cut{.name = "exaone", .single_digits = true},
    Cut{.name = "llama-bpe", .cut = kLlama3Cut, .whole_words = true, .begin_of_text = true},
    Cut{.name = "llama3", .cut = kLlama3Cut, .whole_words = true, .begin_of_text = true},
    Cut{.name = "llama-v3", .cut = kLlama3Cut, .whole_words = true, .begin_of_text = true},
    Cut{.name = "dbrx", .cut = kLlama3Cut},
    Cut{.name = "smaug-bpe", .cut = kLlama3Cut},
    Cut{.name = "qwen2", .cut = kQwen2Cut, .nfc = true},
    Cut{.name = "deepseek-r1-qwen", .cut = kQwen2Cut},
    Cut{.name = "tekken", .cut = kTekkenCut, .whole_words = true, .begin_of_text = true},
    Cut{.name = "gpt-4o", .cut = kGpt4oCut, .whole_words = true},
};

Json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

const Cut& cut_of(const File& file) {
  const std::string name = file.text("tokenizer.ggml.pre", "(absent)");
  std::string known;
  for (const Cut& cut : kCuts) {
    if (cut.name == name) return cut;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", cut.name);
  }
  throw Error("{}: how text is cut (tokenizer.ggml.pre) is '{}', which is not supported; known: {}",
              file.path().string(), name, known);
}

Json pre_tokenizer(const Cut& cut) {
  Json steps = Json::array();
  if (cut.single_digits) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (cut.cut != nullptr)
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", cut.cut}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  steps.push_back(byte_level(cut.cut == nullptr));
  if (steps.size() == 1) return steps[0];
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

Json bpe_model(const Json& vocab, Json merges, bool whole_words, bool sentencepiece,
               const Json& unknown) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", unknown},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", sentencepiece},
          {"byte_fallback", sentencepiece},
          {"ignore_merges", whole_words},
          {"vocab", vocab},
          {"merges", std::move(merges)}};
}

void byte_level_tokenizer(const File& file, const Vocabulary& vocabulary, Json& out) {
  const Cut& cut = cut_of(file);
  const auto* merges = file.texts("tokenizer.ggml.merges");
  if (merges == nullptr)
    throw Error("{}: the metadata has no tokenizer.ggml.merges", file.path().string());
  Json pairs = Json::array();
  for (const std::string& merge : *merges) {
    const size_t space = merge.find(' ');
    if (space == 0 || space == std::string::npos || space + 1 == merge.size())
      throw Error("{}: the merge '{}' is no pair", file.path().string(), merge);
    pairs.push_back({merge.substr(0, space), merge.substr(space + 1)});
  }
  if (cut.nfc) out["normalizer"] = {{"type", "NFC"}};
  out["pre_tokenizer"] = pre_tokenizer(cut);
  out["decoder"] = byte_level(true);
  out["model"] =
      bpe_model(vocab_json(file, vocabulary), std::move(pairs), cut.whole_words, false, nullptr);
}

// --- sentencepiece

// The merges that a vocabulary with scores implies: every way to put an entry together from two
// others, the best score first.
Json implied_merges(const Vocabulary& vocabulary) {
  struct Merge {
    double score;
    size_t whole, cut;
  };
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < vocabulary.tokens->size(); ++id)
    ids.emplace((*vocabulary.tokens)[id], id);
  constexpr size_t kLongest = 512;  // bytes; a longer entry is damage, and its cuts would be many
  std::vector<Merge> merges;
  for (size_t id = 0; id < vocabulary.tokens->size(); ++id) {
    const std::string_view token = (*vocabulary.tokens)[id];
    if (token.size() > kLongest) continue;
    for (size_t cut = 1; cut < token.size(); ++cut)
      if (ids.contains(token.substr(0, cut)) && ids.contains(token.substr(cut)))
        merges.push_back({(*vocabulary.scores)[id], id, cut});
  }
  // Entries of equal score keep the order that the reference gives them: longer left part first.
  const auto num_characters = [](std::string_view text) {
    return std::ranges::count_if(text,
                                 [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; });
  };
  const auto left = [&](const Merge& m) {
    return std::string_view((*vocabulary.tokens)[m.whole]).substr(0, m.cut);
  };
  const auto right = [&](const Merge& m) {
    return std::string_view((*vocabulary.tokens)[m.whole]).substr(m.cut);
  };
  std::ranges::stable_sort(merges, [&](const Merge& a, const Merge& b) {
    if (a.score != b.score) return a.score > b.score;
    const auto a_left = num_characters(left(a)), b_left = num_characters(left(b));
    if (a_left != b_left) return a_left > b_left;
    return num_characters(right(a)) > num_characters(right(b));
  });
  Json pairs = Json::array();
  for (const Merge& merge : merges)
    pairs.push_back({std::string(left(merge)), std::string(right(merge))});
  return pairs;
}

Json token_of(const File& file, const Vocabulary& vocabulary, const char* key) {
  if (!file.has(key)) return nullptr;
  const int64_t id = file.integer(key);
  if (id < 0 || id >= static_cast<int64_t>(vocabulary.tokens->size()))
    throw Error("{}: {} is {}, but there are {} tokens", file.path().string(), key, id,
                vocabulary.tokens->size());
  return (*vocabulary.tokens)[static_cast<size_t>(id)];
}

void require_scores(const File& file, const Vocabulary& vocabulary) {
  if (vocabulary.scores == nullptr)
    throw Error("{}: the metadata has no tokenizer.ggml.scores", file.path().string());
}

void sentencepiece_bpe(const File& file, const Vocabulary& vocabulary, Json& out) {
  require_scores(file, vocabulary);
  const bool prefix = file.flag("tokenizer.ggml.add_space_prefix", true);
  Json normalizers = Json::array();
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
  normalizers.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}});
  out["normalizer"] = {{"type", "Sequence"}, {"normalizers", normalizers}};
  Json decoders = {{{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}},
                   {{"type", "ByteFallback"}},
                   {{"type", "Fuse"}}};
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  out["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
  Json unknown = token_of(file, vocabulary, "tokenizer.ggml.unknown_token_id");
  out["model"] =
      bpe_model(vocab_json(file, vocabulary), implied_merges(vocabulary), false, true, unknown);
}

void unigram(const File& file, const Vocabulary& vocabulary, Json& out) {
  require_scores(file, vocabulary);
  if (file.has("tokenizer.ggml.precompiled_charsmap"))
    throw Error("{}: tokenizer.ggml.precompiled_charsmap is not supported", file.path().string());
  Json entries = Json::array();
  for (size_t id = 0; id < vocabulary.tokens->size(); ++id)
    entries.push_back({(*vocabulary.tokens)[id], (*vocabulary.scores)[id]});
  const Json metaspace = {
      {"type", "Metaspace"},
      {"replacement", kSpace},
      {"prepend_scheme", file.flag("tokenizer.ggml.add_space_prefix", true) ? "always" : "never"},
      {"split", true}};
  out["pre_tokenizer"] = metaspace;
  out["decoder"] = metaspace;
  out["model"] = {{"type", "Unigram"},
                  {"unk_id", file.has("tokenizer.ggml.unknown_token_id")
                                 ? Json(file.integer("tokenizer.ggml.unknown_token_id"))
                                 : Json()},
                  {"vocab", entries},
                  {"byte_fallback", false}};
}

// --- what is put around a text

struct Around {
  bool bos, eos;
};

Around around(const File& file) {
  const std::string kind = file.text("tokenizer.ggml.model");
  const bool bos = kind == "llama" || (kind == "gpt2" && cut_of(file).begin_of_text);
  return {file.flag("tokenizer.ggml.add_bos_token", bos),
          file.flag("tokenizer.ggml.add_eos_token", kind == "t5")};
}

Json post_processor(const File& file, const Vocabulary& vocabulary) {
  const Around add = around(file);
  Json single = Json::array(), pair = Json::array(), specials = Json::object();
  const auto special = [&](const char* key, bool wanted,
                           const std::vector<std::pair<Json*, int>>& to) {
    const Json token = token_of(file, vocabulary, key);
    if (!wanted || token.is_null()) return;
    for (const auto& [list, type] : to)
      list->push_back({{"SpecialToken", {{"id", token}, {"type_id", type}}}});
    specials[token.get<std::string>()] = {
        {"id", token}, {"ids", Json::array({file.integer(key)})}, {"tokens", Json::array({token})}};
  };
  const auto text = [](Json& list, const char* id, int type) {
    list.push_back({{"Sequence", {{"id", id}, {"type_id", type}}}});
  };
  special("tokenizer.ggml.bos_token_id", add.bos, {{&single, 0}, {&pair, 0}});
  text(single, "A", 0);
  text(pair, "A", 0);
  special("tokenizer.ggml.eos_token_id", add.eos, {{&single, 0}, {&pair, 0}});
  special("tokenizer.ggml.bos_token_id", add.bos, {{&pair, 1}});
  text(pair, "B", 1);
  special("tokenizer.ggml.eos_token_id", add.eos, {{&pair, 1}});
  if (specials.empty()) return nullptr;
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", specials}};
}

std::string tokenizer_json(const File& file, const Vocabulary& vocabulary) {
  Json out = {{"version", "1.0"},
              {"truncation", nullptr},
              {"padding", nullptr},
              {"added_tokens", added_tokens(vocabulary)},
              {"normalizer", nullptr},
              {"pre_tokenizer", nullptr},
              {"post_processor", post_processor(file, vocabulary)}};
  const std::string kind = file.text("tokenizer.ggml.model");
  if (kind == "gpt2")
    byte_level_tokenizer(file, vocabulary, out);
  else if (kind == "llama")
    sentencepiece_bpe(file, vocabulary, out);
  else if (kind == "t5")
    unigram(file, vocabulary, out);
  else
    throw Error("{}: the tokenizer kind (tokenizer.ggml.model) is '{}'; supported: gpt2, llama, t5",
                file.path().string(), kind);
  return out.dump(1) + "\n";
}

std::string tokenizer_config_json(const File& file, const Vocabulary& vocabulary) {
  const Around add = around(file);
  Json out = {{"tokenizer_class", "PreTrainedTokenizerFast"},
              {"clean_up_tokenization_spaces", false},
              {"add_bos_token", add.bos},
              {"add_eos_token", add.eos}};
  for (const auto& [field, key] : {std::pair("bos_token", "tokenizer.ggml.bos_token_id"),
                                   std::pair("eos_token", "tokenizer.ggml.eos_token_id"),
                                   std::pair("unk_token", "tokenizer.ggml.unknown_token_id"),
                                   std::pair("pad_token", "tokenizer.ggml.padding_token_id")}) {
    const Json token = token_of(file, vocabulary, key);
    if (!token.is_null()) out[field] = token;
  }
  const std::string architecture = file.text("general.architecture");
  if (file.has(architecture + ".context_length"))
    out["model_max_length"] = file.integer(architecture + ".context_length");
  const std::string chat = file.text("tokenizer.chat_template", "");
  if (!chat.empty()) out["chat_template"] = chat;
  return out.dump(2) + "\n";
}

std::string generation_config_json(const Json& config) {
  Json out = {{"_from_model_config", true}};
  for (const char* field : {"bos_token_id", "eos_token_id", "pad_token_id"})
    if (!config[field].is_null()) out[field] = config[field];
  return out.dump(2) + "\n";
}

}  // namespace

PublishedFiles published_files(const File& file) try {
  PublishedFiles out;
  const Json config = config_of(file, architecture_of(file));
  out.config_json = config.dump(2) + "\n";
  out.generation_config_json = generation_config_json(config);
  if (!file.has("tokenizer.ggml.model")) return out;
  const Vocabulary vocabulary = vocabulary_of(file);
  out.tokenizer_json = tokenizer_json(file, vocabulary);
  out.tokenizer_config_json = tokenizer_config_json(file, vocabulary);
  out.chat_template = file.text("tokenizer.chat_template", "");
  return out;
} catch (const nlohmann::json::exception& error) {  // of all texts, one that is not UTF-8
  throw Error("{}: a text of the metadata is not UTF-8: {}", file.path().string(),
              json_reason(error.what()));
}

}  // namespace rhea::gguf
