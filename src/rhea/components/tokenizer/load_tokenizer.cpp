// Finding the files of a tokenizer and building it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/tokenizer/cut_patterns.h"
#include "rhea/components/tokenizer/hf_tokenizer.h"

namespace rhea::tokenizer {
namespace {

namespace fs = std::filesystem;
using Warnings = std::vector<std::string>;

std::shared_ptr<const Tokenizer> build(std::string_view tokenizer_json,
                                       const TokenizerConfig* config, const std::string& name,
                                       Warnings& warnings) {
  const Json json = parse_json(tokenizer_json, name);
  const JsonField root(json, name + ": ");
  root.object();
  return std::make_shared<HfTokenizer>(root, config, name, warnings);
}

std::optional<TokenizerConfig> read_config(const fs::path& folder, Warnings& warnings) {
  const fs::path path = folder / "tokenizer_config.json";
  if (!fs::exists(path)) {
    warnings.push_back(path.string() +
                       " is absent: bos and eos are taken from the tokenizer's post-processor");
    return std::nullopt;
  }
  TokenizerConfig config = parse_tokenizer_config(read_file(path), path.string());
  // A template in a file of its own beats the one in the config.
  if (const fs::path chat = folder / "chat_template.jinja"; fs::exists(chat))
    config.chat_template = read_file(chat);
  return config;
}

// The older form of byte-level BPE: a vocabulary, merges one a line, and a class name that stands
// for the cuts.
std::shared_ptr<const Tokenizer> build_from_merges(const fs::path& folder,
                                                   const TokenizerConfig* config,
                                                   Warnings& warnings) {
  const bool qwen = config != nullptr && config->tokenizer_class.starts_with("Qwen2");
  Json merges = Json::array();
  const std::string text = read_file(folder / "merges.txt");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && !(at == 0 && line.starts_with("#version")))
      merges.push_back(std::move(line));
    at = end + 1;
  }
  Json pre_tokenizer = pre_tokenizer_json(qwen ? CutPattern::qwen : CutPattern::gpt2);
  const bool prefix_space = config != nullptr && config->add_prefix_space.value_or(false);
  (qwen ? pre_tokenizer["pretokenizers"].back() : pre_tokenizer)["add_prefix_space"] = prefix_space;
  const fs::path vocab = folder / "vocab.json";
  const Json json = {{"normalizer", qwen ? Json{{"type", "NFC"}} : Json()},
                     {"pre_tokenizer", std::move(pre_tokenizer)},
                     {"decoder", {{"type", "ByteLevel"}}},
                     {"model",
                      {{"type", "BPE"},
                       {"vocab", parse_json(read_file(vocab), vocab.string())},
                       {"merges", std::move(merges)}}}};
  return std::make_shared<HfTokenizer>(JsonField(json, folder.string() + ": "), config,
                                       folder.string(), warnings);
}

std::shared_ptr<const Tokenizer> load_folder(const fs::path& path, Warnings& warnings) {
  if (!fs::is_directory(path))
    throw Error(
        "tokenizer: {} does not exist; give a folder with tokenizer.json or the file itself",
        path.string());
  const fs::path file = path / "tokenizer.json";
  const bool has_merges = fs::exists(path / "vocab.json") && fs::exists(path / "merges.txt");
  if (!fs::exists(file) && !has_merges)
    throw Error("tokenizer: {} holds neither tokenizer.json nor vocab.json with merges.txt",
                path.string());
  const std::optional<TokenizerConfig> config = read_config(path, warnings);
  const TokenizerConfig* config_or_null = config ? &*config : nullptr;
  if (fs::exists(file)) return build(read_file(file), config_or_null, file.string(), warnings);
  return build_from_merges(path, config_or_null, warnings);
}

// Runs `load`; what it warns of goes to `warnings`, or to the log.
template <class F>
std::shared_ptr<const Tokenizer> with_warnings(Warnings* warnings, F&& load) {
  Warnings found;
  auto tokenizer = load(found);
  for (std::string& warning : found) {
    if (warnings != nullptr) {
      warnings->push_back(std::move(warning));
    } else {
      log::warning("tokenizer", "{}", warning);
    }
  }
  return tokenizer;
}

}  // namespace

std::shared_ptr<const Tokenizer> parse_tokenizer(std::string_view tokenizer_json,
                                                 std::string_view tokenizer_config_json,
                                                 const std::string& name, Warnings* warnings) {
  return with_warnings(warnings, [&](Warnings& found) {
    if (tokenizer_config_json.empty()) return build(tokenizer_json, nullptr, name, found);
    const TokenizerConfig config =
        parse_tokenizer_config(tokenizer_config_json, name + " (tokenizer_config.json)");
    return build(tokenizer_json, &config, name, found);
  });
}

std::shared_ptr<const Tokenizer> load_tokenizer(const fs::path& path, Warnings* warnings) {
  return with_warnings(warnings, [&](Warnings& found) {
    if (fs::is_regular_file(path)) return build(read_file(path), nullptr, path.string(), found);
    return load_folder(path, found);
  });
}

void check_vocabulary(const Tokenizer& tokenizer, int64_t model_vocab_size) {
  const int64_t largest = tokenizer.vocab_size() - 1;
  if (largest < model_vocab_size) return;
  throw Error(
      "the tokenizer's token \"{}\" has id {}, but the model's vocabulary has {} entries (ids 0 to "
      "{}); raise the model's "
      "vocab_size or take the tokenizer that belongs to it",
      tokenizer.token_text(narrow<int32_t>(largest)), largest, model_vocab_size,
      model_vocab_size - 1);
}

}  // namespace rhea::tokenizer
