// Finding the files of a tokenizer and building it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "rhea/base/downloaded.h"
#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/log.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/tokenizer/cut_patterns.h"
#include "rhea/components/tokenizer/hf_tokenizer.h"
#include "rhea/components/tokenizer/readers.h"
#include "rhea/components/tokenizer/tiktoken.h"

namespace rhea::tokenizer {
namespace {

namespace fs = std::filesystem;
using Warnings = std::vector<std::string>;

std::optional<TokenizerConfig> read_config(const fs::path& folder, Warnings& warnings) {
  const fs::path path = folder / "tokenizer_config.json";
  const fs::path map_path = folder / "special_tokens_map.json";
  std::optional<TokenizerConfig> config;
  if (fs::exists(path)) config = parse_tokenizer_config(read_file(path), path.string());
  if (fs::exists(map_path)) {
    // Says only which token has which role; the config comes first.
    const TokenizerConfig map = parse_tokenizer_config(read_file(map_path), map_path.string());
    if (!config) config.emplace();
    if (!config->bos_token) config->bos_token = map.bos_token;
    if (!config->eos_token) config->eos_token = map.eos_token;
    if (!config->pad_token) config->pad_token = map.pad_token;
  }
  if (!config) {
    warnings.push_back(path.string() +
                       " is absent: bos and eos are taken from the tokenizer's post-processor");
    return std::nullopt;
  }
  // A template in a file of its own beats the one in the config.
  if (const fs::path chat = folder / "chat_template.jinja"; fs::exists(chat))
    config->chat_template = read_file(chat);
  return config;
}

// Tokens that older programs kept beside the vocabulary: {"token": id}.
void add_legacy_tokens(const fs::path& path, TokenizerConfig& config) {
  if (!fs::exists(path)) return;
  const Json json = parse_json(read_file(path), path.string());
  const JsonField root(json, path.string() + ": ");
  for (const auto& [content, id] : root.object().items()) {
    const auto is_same = [&](const AddedToken& token) { return token.content == content; };
    if (std::any_of(config.added_tokens.begin(), config.added_tokens.end(), is_same)) continue;
    AddedToken token;
    token.id = JsonField(id, root.where() + content).id();
    token.content = content;
    config.added_tokens.push_back(std::move(token));
  }
}

// The older form of byte-level BPE: a vocabulary, merges one a line, and a class name that stands
// for the cuts.
std::shared_ptr<const Tokenizer> build_from_merges(const fs::path& folder,
                                                   const TokenizerConfig* config,
                                                   Warnings& warnings) {
  const bool qwen = config != nullptr && config->tokenizer_class.starts_with("Qwen2");
  Json merges = Json::array();
  const std::string text = read_file(folder / "merges.txt");
  check_downloaded(text, (folder / "merges.txt").string());
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

// A word list: WordPiece where the config names BERT's class, else whole words.
std::shared_ptr<const Tokenizer> build_from_words(const fs::path& file,
                                                  const TokenizerConfig* config,
                                                  Warnings& warnings) {
  const std::string text = read_file(file);
  check_downloaded(text, file.string());
  Json vocab = Json::object();
  if (file.extension() == ".json") {
    vocab = parse_json(text, file.string());
  } else {
    int32_t id = 0;
    for (size_t at = 0; at < text.size(); ++id) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string word = text.substr(at, end - at);
      if (word.ends_with('\r')) word.pop_back();
      vocab[word] = id;
      at = end + 1;
    }
  }
  const bool bert = config != nullptr && config->tokenizer_class.find("Bert") != std::string::npos;
  Json json = {{"model", {{"unk_token", "[UNK]"}, {"vocab", std::move(vocab)}}}};
  if (bert) {
    json["model"]["type"] = "WordPiece";
    json["normalizer"] = {{"type", "BertNormalizer"},
                          {"lowercase", config->do_lower_case.value_or(true)}};
    json["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
    json["decoder"] = {{"type", "WordPiece"}};
  } else {
    json["model"]["type"] = "WordLevel";
    json["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  }
  return std::make_shared<HfTokenizer>(JsonField(json, file.string() + ": "), config, file.string(),
                                       warnings);
}

// Classes of Transformers that number the pieces of their file anew, each in its own way.
constexpr std::array kRenumbering = {"Barthez", "Camembert", "M2M100", "MBart",
                                     "Nllb",    "PLBart",    "XGLM"};
constexpr std::string_view kFairseqClass = "XLMRoberta";

PieceIds piece_ids(const TokenizerConfig* config, const std::string& name) {
  if (config == nullptr) return PieceIds::file;
  const std::string& tokenizer_class = config->tokenizer_class;
  for (const char* prefix : kRenumbering)
    if (tokenizer_class.starts_with(prefix))
      throw Error(
          "{}: tokenizer_class {} gives the pieces of this file other ids, which only {} of "
          "SentencePiece's files is read with; save the tokenizer with Transformers, so that the "
          "folder holds a tokenizer.json",
          name, tokenizer_class, kFairseqClass);
  return tokenizer_class.starts_with(kFairseqClass) ? PieceIds::fairseq : PieceIds::file;
}

std::shared_ptr<const Tokenizer> build_from_sentencepiece(std::string_view bytes,
                                                          const TokenizerConfig* config,
                                                          const std::string& name,
                                                          Warnings& warnings) {
  const PieceIds ids = piece_ids(config, name);
  SentencePieceModel model(bytes, name, ids);
  TokenizerConfig roles = config != nullptr ? *config : TokenizerConfig();
  const auto text_of = [&](std::optional<int32_t> id) -> std::optional<std::string> {
    if (!id) return std::nullopt;
    return model.vocabulary().token(*id);
  };
  if (!roles.bos_token) roles.bos_token = text_of(model.bos_id());
  if (!roles.eos_token) roles.eos_token = text_of(model.eos_id());
  // What Transformers' classes do without being told.
  const auto is_class = [&](std::string_view prefix) {
    return roles.tokenizer_class.starts_with(prefix);
  };
  if (!roles.add_bos_token && (is_class("Llama") || is_class("CodeLlama") || is_class("Gemma")))
    roles.add_bos_token = true;
  if (!roles.add_eos_token && is_class("T5Tokenizer")) roles.add_eos_token = true;
  if (ids == PieceIds::fairseq) {
    if (!roles.pad_token) roles.pad_token = "<pad>";
    if (!roles.add_bos_token) roles.add_bos_token = true;
    if (!roles.add_eos_token) roles.add_eos_token = true;
  }
  Json added = Json::array();
  for (const int32_t id : model.special_ids())
    added.push_back({{"id", id}, {"content", model.vocabulary().token(id)}, {"special", true}});
  const Json json = {
      {"added_tokens", std::move(added)},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
          {{"type", "ByteFallback"}},
          {{"type", "Fuse"}},
          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}}};
  return std::make_shared<HfTokenizer>(JsonField(json, name + ": "), &roles, name, warnings,
                                       TokenModel(std::move(model)));
}

// A message that begins with its first piece: a length byte follows the line feed, not JSON.
bool is_sentencepiece(std::string_view bytes) {
  return bytes.starts_with('\n') && bytes.find_first_not_of(" \t\r\n") != bytes.find('{');
}

// Classes of Transformers that make their cuts themselves, with the space before the text that
// their config asks for (none: no space), whatever tokenizer.json says; the others take the file's.
constexpr std::array kOwnPrefixSpace = {"Bart",    "CodeGen", "Cohere",  "GPT2",
                                        "GPTNeoX", "Qwen2",   "Roberta", "Whisper"};

void set_prefix_space(Json& pre_tokenizer, bool value, int depth = 0) {
  // What is not of the format, the pre-tokenizer refuses.
  if (!pre_tokenizer.is_object() || depth > kMaxComponentDepth) return;
  if (const auto list = pre_tokenizer.find("pretokenizers"); list != pre_tokenizer.end())
    for (Json& item : *list) set_prefix_space(item, value, depth + 1);
  if (const auto type = pre_tokenizer.find("type");
      type != pre_tokenizer.end() && *type == "ByteLevel")
    pre_tokenizer["add_prefix_space"] = value;
}

void apply_prefix_space(const TokenizerConfig& config, Json& tokenizer) {
  const auto is_class = [&](const char* name) {
    return config.tokenizer_class == std::string(name) + "Tokenizer" ||
           config.tokenizer_class == std::string(name) + "TokenizerFast";
  };
  const auto cuts = tokenizer.find("pre_tokenizer");
  if (cuts != tokenizer.end() &&
      std::any_of(kOwnPrefixSpace.begin(), kOwnPrefixSpace.end(), is_class))
    set_prefix_space(*cuts, config.add_prefix_space.value_or(false));
}

// What the content is tells how it is read.
std::shared_ptr<const Tokenizer> build(std::string_view content, const TokenizerConfig* config,
                                       const std::string& name, Warnings& warnings) {
  check_downloaded(content, name);
  if (is_sentencepiece(content)) return build_from_sentencepiece(content, config, name, warnings);
  Json json = is_tiktoken(content) ? tiktoken_to_json(content, name) : parse_json(content, name);
  const JsonField root(json, name + ": ");
  root.object();
  if (config != nullptr) apply_prefix_space(*config, json);
  return std::make_shared<HfTokenizer>(root, config, name, warnings);
}

// The first file of the folder that ends in `extension`, by name.
std::optional<fs::path> find_by_extension(const fs::path& folder, const std::string& extension) {
  std::optional<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == extension && (!found || entry.path() < *found))
      found = entry.path();
  return found;
}

// tokenizer_config.json of the folder, if `path` is one.
std::optional<TokenizerConfig> config_of(const fs::path& path, Warnings& warnings) {
  if (!fs::is_directory(path)) return std::nullopt;
  std::optional<TokenizerConfig> config = read_config(path, warnings);
  if (!fs::exists(path / "tokenizer.json") && config)
    add_legacy_tokens(path / "added_tokens.json", *config);
  return config;
}

std::optional<fs::path> find(const fs::path& folder, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (fs::exists(folder / name)) return folder / name;
  return std::nullopt;
}

bool has_merges(const fs::path& path) {
  return fs::exists(path / "vocab.json") && fs::exists(path / "merges.txt");
}

// The file itself, or the one of a folder that may hold a model of any of these formats.
std::optional<fs::path> model_file(const fs::path& path) {
  if (!fs::is_directory(path))
    return path.extension() == ".txt" ? std::nullopt : std::optional(path);
  const auto named = find(path, {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"});
  return named ? named : find_by_extension(path, ".tiktoken");
}

std::optional<fs::path> word_list(const fs::path& path) {
  if (!fs::is_directory(path))
    return path.extension() == ".txt" ? std::optional(path) : std::nullopt;
  return find(path, {"vocab.json", "vocab.txt"});
}

bool model_is(const fs::path& path, bool (*has_format)(std::string_view bytes)) {
  const auto file = model_file(path);
  return file && has_format(MappedFile(*file).text());
}

bool is_json(std::string_view bytes) { return !is_sentencepiece(bytes) && !is_tiktoken(bytes); }

// The reader of a format whose file model_file() finds.
Reader model_reader(const char* name, bool (*has_format)(std::string_view bytes)) {
  return {name, [has_format](const fs::path& path) { return model_is(path, has_format); },
          [](const ReadOptions& options, Warnings& warnings) {
            const fs::path& path = options.path;
            const auto config = config_of(path, warnings);
            const fs::path file = *model_file(path);
            return build(read_file(file), config ? &*config : nullptr, file.string(), warnings);
          }};
}

// tokenizer.json of a folder goes first; a model file that holds JSON is read the same way.
Reader json_reader() {
  return {"tokenizer_json",
          [](const fs::path& path) {
            if (fs::exists(path / "tokenizer.json")) return true;
            return !has_merges(path) && model_is(path, is_json);
          },
          [](const ReadOptions& options, Warnings& warnings) {
            const fs::path& path = options.path;
            const auto config = config_of(path, warnings);
            fs::path file = path / "tokenizer.json";
            if (!fs::exists(file)) file = *model_file(path);
            return build(read_file(file), config ? &*config : nullptr, file.string(), warnings);
          }};
}

Reader merges_reader() {
  return {"merges", has_merges, [](const ReadOptions& options, Warnings& warnings) {
            const auto config = config_of(options.path, warnings);
            return build_from_merges(options.path, config ? &*config : nullptr, warnings);
          }};
}

Reader words_reader() {
  return {"words", [](const fs::path& path) { return word_list(path).has_value(); },
          [](const ReadOptions& options, Warnings& warnings) {
            const fs::path& path = options.path;
            const auto config = config_of(path, warnings);
            return build_from_words(*word_list(path), config ? &*config : nullptr, warnings);
          }};
}

const Reader& reader_of(const fs::path& path, std::string_view kind) {
  if (!fs::exists(path))
    throw Error(
        "tokenizer: {} does not exist; give a folder with tokenizer.json or the file itself",
        path.string());
  if (kind != kAnyKind) {
    const Reader& reader = readers().at(kind);
    if (reader.knows && !reader.knows(path))
      throw Error("tokenizer: {} holds no files of kind {} (tokenizer.kind)", path.string(), kind);
    return reader;
  }
  const auto kinds = kinds_of(path);
  if (kinds.empty())
    throw Error(
        "tokenizer: {} holds neither tokenizer.json, vocab.json with merges.txt, tokenizer.model, "
        "spiece.model, a *.tiktoken file, vocab.json nor vocab.txt",
        path.string());
  return readers().at(kinds.front());
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

std::shared_ptr<const Tokenizer> parse_tokenizer(std::string_view content,
                                                 std::string_view tokenizer_config_json,
                                                 const std::string& name, Warnings* warnings) {
  return with_warnings(warnings, [&](Warnings& found) {
    if (tokenizer_config_json.empty()) return build(content, nullptr, name, found);
    const TokenizerConfig config =
        parse_tokenizer_config(tokenizer_config_json, name + " (tokenizer_config.json)");
    return build(content, &config, name, found);
  });
}

NamedTable<Reader>& readers() {
  static NamedTable<Reader> table = [] {
    NamedTable<Reader> made("tokenizer.kind", [](const Reader& reader) -> std::string_view {
      if (reader.name == kAnyKind) return "takes the word that leaves it to the files";
      return reader.read ? "" : "has no read function";
    });
    made.add(json_reader(), kInTree);
    made.add(merges_reader(), kInTree);
    made.add(model_reader("sentencepiece", is_sentencepiece), kInTree);
    made.add(model_reader("tiktoken", is_tiktoken), kInTree);
    made.add(words_reader(), kInTree);
    return made;
  }();
  return table;
}

std::vector<std::string> kinds_of(const fs::path& path) {
  std::vector<std::string> kinds;
  readers().for_each([&](const Reader& reader) {
    if (reader.knows && reader.knows(path)) kinds.push_back(reader.name);
  });
  return kinds;
}

std::shared_ptr<const Tokenizer> load_tokenizer(const ReadOptions& options, std::string_view kind,
                                                Warnings* warnings) {
  const Reader& reader = reader_of(options.path, kind);
  auto tokenizer =
      with_warnings(warnings, [&](Warnings& found) { return reader.read(options, found); });
  if (!tokenizer)
    throw Error("tokenizer.kind {} read nothing of {}", reader.name, options.path.string());
  return tokenizer;
}

std::shared_ptr<const Tokenizer> load_tokenizer(const fs::path& path, Warnings* warnings) {
  return load_tokenizer({path}, kAnyKind, warnings);
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
