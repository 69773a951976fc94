// Finding the files of a tokenizer and building it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/tokenizer/hf_tokenizer.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const Tokenizer> build(std::string_view tokenizer_json,
                                       const TokenizerConfig* config, const std::string& name) {
  const Json json = parse_json(tokenizer_json, name);
  const JsonField root(json, name + ": ");
  root.object();
  return std::make_shared<HfTokenizer>(root, config, name);
}

std::optional<TokenizerConfig> read_config(const fs::path& folder) {
  const fs::path path = folder / "tokenizer_config.json";
  if (!fs::exists(path)) {
    log::warning("tokenizer",
                 "{} is absent: bos and eos are taken from the tokenizer's post-processor",
                 path.string());
    return std::nullopt;
  }
  TokenizerConfig config = parse_tokenizer_config(read_file(path), path.string());
  // A template in a file of its own beats the one in the config.
  if (const fs::path chat = folder / "chat_template.jinja"; fs::exists(chat))
    config.chat_template = read_file(chat);
  return config;
}

}  // namespace

std::shared_ptr<const Tokenizer> parse_tokenizer(std::string_view tokenizer_json,
                                                 std::string_view tokenizer_config_json,
                                                 const std::string& name) {
  if (tokenizer_config_json.empty()) return build(tokenizer_json, nullptr, name);
  const TokenizerConfig config =
      parse_tokenizer_config(tokenizer_config_json, name + " (tokenizer_config.json)");
  return build(tokenizer_json, &config, name);
}

std::shared_ptr<const Tokenizer> load_tokenizer(const fs::path& path) {
  if (fs::is_regular_file(path)) return build(read_file(path), nullptr, path.string());
  if (!fs::is_directory(path))
    throw Error(
        "tokenizer: {} does not exist; give a folder with tokenizer.json or the file itself",
        path.string());
  const fs::path file = path / "tokenizer.json";
  if (!fs::exists(file)) throw Error("tokenizer: {} holds no tokenizer.json", path.string());
  const std::optional<TokenizerConfig> config = read_config(path);
  return build(read_file(file), config ? &*config : nullptr, file.string());
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
