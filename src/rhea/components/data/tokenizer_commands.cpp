// The subcommands of `rhea tokenizer`.
#include "rhea/components/data/tokenizer_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/data/debug_text.h"
#include "rhea/components/data/open_dataset.h"
#include "rhea/components/tokenizer/bpe_trainer.h"
#include "rhea/components/tokenizer/readers.h"
#include "rhea/components/tokenizer/sha256.h"

namespace rhea::data {
namespace {

using nlohmann::json;
using tokenizer::EncodeOptions;
using tokenizer::Tokenizer;

// Header, text and end of each turn, in the manner of Llama 3.
constexpr const char* kChatTemplate =
    "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message['role'] "
    "}}<|end_header_id|>\n\n"
    "{{ message['content'] | trim }}<|eot_id|>{% endfor %}{% if add_generation_prompt "
    "%}<|start_header_id|>assistant"
    "<|end_header_id|>\n\n{% endif %}";

// Warnings go to standard error: standard output belongs to the result.
std::shared_ptr<const Tokenizer> load(const std::filesystem::path& path, const std::string& kind) {
  std::vector<std::string> warnings;
  auto tokenizer = tokenizer::load_tokenizer({path}, kind, &warnings);
  for (const std::string& warning : warnings) std::cerr << "rhea: warning: " << warning << "\n";
  return tokenizer;
}

EncodeOptions encode_options(const TokenizerCodeOptions& options) {
  EncodeOptions result;
  if (options.add_bos) result.add_bos = true;
  if (options.add_eos) result.add_eos = true;
  result.add_specials = !options.no_specials;
  result.truncate_and_pad = options.truncate_and_pad;
  if (options.plain) result.special_tokens_in_text = tokenizer::SpecialTokensInText::plain;
  return result;
}

std::string read_all(std::istream& input) {
  return {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
}

// Calls f(parsed value) for each line that is not blank; an error names the line.
template <class F>
void for_each_json_line(std::istream& input, F&& f) {
  int64_t number = 0;
  for (std::string line; std::getline(input, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      f(parse_json(line));
    } catch (const json::exception& error) {
      throw Error("line {}: {}", number, json_reason(error.what()));
    } catch (const Error& error) {
      throw Error("line {}: {}", number, error.what());
    }
  }
}

std::string decode(const Tokenizer& tokenizer, std::vector<int32_t> ids,
                   const EncodeOptions& options) {
  const std::vector<int32_t> prefix = tokenizer.prefix_ids(options);
  const std::vector<int32_t> suffix = tokenizer.suffix_ids(options);
  if (ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin()))
    ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(prefix.size()));
  if (ids.size() >= suffix.size() && std::equal(suffix.rbegin(), suffix.rend(), ids.rbegin()))
    ids.resize(ids.size() - suffix.size());
  return tokenizer.decode(ids);
}

// A list of whole numbers; anything else would be rounded or cut to one in silence.
std::vector<int32_t> token_ids(const json& list) {
  if (!list.is_array()) throw Error("expected a list of token ids, found {}", list.type_name());
  std::vector<int32_t> ids;
  for (const json& id : list) {
    if (!id.is_number_integer())
      throw Error("id {} of the list is {}, not a whole number", ids.size(), id.type_name());
    if (id < 0 || id > std::numeric_limits<int32_t>::max())
      throw Error("id {} of the list is {}, which no token has", ids.size(), id.dump());
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

std::string describe_token(const Tokenizer& tokenizer, std::optional<int32_t> id) {
  return id ? fmt::format("{} (id {})", tokenizer.token_text(*id), *id) : "none";
}

std::vector<std::string> default_special_tokens() {
  std::vector<std::string> tokens = {"<|begin_of_text|>",   "<|end_of_text|>",   "<|pad|>",
                                     "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
  for (int i = 0; i < 16; ++i) tokens.push_back(fmt::format("<|reserved_special_token_{}|>", i));
  return tokens;
}

}  // namespace

void tokenizer_encode(const TokenizerCodeOptions& options, std::istream& input,
                      std::ostream& output) {
  const auto tokenizer = load(options.tokenizer, options.kind);
  const EncodeOptions encode = encode_options(options);
  if (!options.jsonl) {
    output << fmt::format("{}\n", fmt::join(tokenizer->encode(read_all(input), encode), " "));
    return;
  }
  for_each_json_line(input, [&](const json& text) {
    if (!text.is_string()) throw Error("expected a JSON string, found {}", text.type_name());
    output << fmt::format(
        "[{}]\n", fmt::join(tokenizer->encode(text.get_ref<const std::string&>(), encode), ","));
  });
}

void tokenizer_decode(const TokenizerCodeOptions& options, std::istream& input,
                      std::ostream& output) {
  const auto tokenizer = load(options.tokenizer, options.kind);
  const EncodeOptions encode = encode_options(options);
  if (options.jsonl) {
    for_each_json_line(input, [&](const json& ids) {
      // Ids may end within a character, whose bytes JSON cannot hold.
      output << json(decode(*tokenizer, token_ids(ids), encode))
                    .dump(-1, ' ', false, json::error_handler_t::replace)
             << "\n";
    });
    return;
  }
  std::vector<int32_t> ids;
  for (int32_t id = 0; input >> id;) ids.push_back(id);
  if (!input.eof())
    throw Error("decode: after {} ids comes something that is not a number", ids.size());
  output << decode(*tokenizer, std::move(ids), encode);
}

void tokenizer_info(const std::filesystem::path& path, const std::string& kind,
                    std::ostream& output) {
  const auto tokenizer = load(path, kind);
  const auto kinds = tokenizer::kinds_of(path);
  int64_t num_special = 0;
  for (int64_t id = 0; id < tokenizer->vocab_size(); ++id)
    num_special += tokenizer->is_special(static_cast<int32_t>(id));
  const auto around = [&](const std::vector<int32_t>& ids) {
    std::string text;
    for (const int32_t id : ids)
      text.append(text.empty() ? "" : " ").append(tokenizer->token_text(id));
    return text.empty() ? std::string("nothing") : text;
  };
  output << fmt::format("tokenizer      {}\n", path.string())
         << fmt::format("kind           {}\n", tokenizer->description())
         << (kinds.size() < 2 ? ""
                              : fmt::format("read as        {} (the files are of the kinds {}; "
                                            "choose with --kind or tokenizer.kind)\n",
                                            kind == tokenizer::kAnyKind ? kinds.front() : kind,
                                            fmt::join(kinds, ", ")))
         << fmt::format("entries        {} ({} special), largest id {}\n", tokenizer->num_tokens(),
                        num_special, tokenizer->vocab_size() - 1)
         << fmt::format("bos            {}\n", describe_token(*tokenizer, tokenizer->bos_id()))
         << fmt::format("eos            {}\n", describe_token(*tokenizer, tokenizer->eos_id()))
         << fmt::format("pad            {}\n", describe_token(*tokenizer, tokenizer->pad_id()))
         << fmt::format("before a text  {}\n", around(tokenizer->prefix_ids({})))
         << fmt::format("after a text   {}\n", around(tokenizer->suffix_ids({})))
         << fmt::format("chat template  {}\n", tokenizer->chat_template().empty() ? "none" : "yes");
}

void tokenizer_train(const TokenizerTrainOptions& options, std::ostream& report) {
  if (options.output.empty()) throw Error("tokenizer train: --output must name a folder");
  // Nothing tells an older result from the tokenizer of a model, which its weights depend on.
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    if (std::filesystem::exists(options.output / name))
      throw Error("tokenizer train: {} is there already; name a folder without a tokenizer",
                  (options.output / name).string());
  tokenizer::BpeTrainerOptions train;
  train.vocab_size = options.vocab_size;
  train.min_frequency = options.min_frequency;
  train.pattern = tokenizer::parse_cut_pattern(options.pattern);
  train.special_tokens =
      options.special_tokens.empty() ? default_special_tokens() : options.special_tokens;
  tokenizer::BpeTrainer trainer(train);
  const auto documents = open_documents({options.dataset, options.dataset_path, false, 1.0},
                                        {options.text_field, false, {}});
  Document document;
  int64_t num_documents = 0;
  int64_t num_bytes = 0;
  const auto count = documents->num_documents();
  for (int64_t number = 0; (!count || number < *count) && documents->read(number, document);
       ++number) {
    if (!document.problem.empty()) throw Error("{}", document.problem);
    trainer.add(document.text);
    ++num_documents;
    num_bytes += static_cast<int64_t>(document.text.size());
  }
  const tokenizer::TrainedBpe bpe = trainer.train();

  tokenizer::TokenizerFileOptions file;
  file.pattern = train.pattern;
  file.special_tokens = train.special_tokens;
  file.bos_token = options.bos_token;
  file.eos_token = options.eos_token;
  file.pad_token = options.pad_token;
  // The template spells tokens of the default list.
  if (options.special_tokens.empty()) file.chat_template = kChatTemplate;
  const std::string tokenizer_json = format_tokenizer_json(bpe, file);
  const std::string config_json = format_tokenizer_config(bpe, file);
  std::filesystem::create_directories(options.output);
  write_file_atomic(options.output / "tokenizer.json", tokenizer_json);
  write_file_atomic(options.output / "tokenizer_config.json", config_json);

  report << fmt::format("{} documents, {} bytes of {}\n", num_documents, num_bytes,
                        documents->description());
  if (options.dataset.starts_with("debug_text"))
    report << "SHA-256 of the files one after the other: "
           << tokenizer::sha256_hex(
                  read_debug_text(options.dataset_path.value_or(kDebugTextFolder)))
           << "\n";
  report << fmt::format("{} entries: 256 bytes, {} merged, {} special\nwritten to {}\n",
                        bpe.tokens.size() + train.special_tokens.size(), bpe.tokens.size() - 256,
                        train.special_tokens.size(), options.output.string());
}

}  // namespace rhea::data
