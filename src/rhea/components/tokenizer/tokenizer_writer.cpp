// tokenizer.json and tokenizer_config.json of a trained vocabulary.
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/cut_patterns.h"

namespace rhea::tokenizer {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Words with one character before them, numbers of up to 3 digits (Qwen: single digits), runs of
// other characters, white space; the published patterns of these families.
constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

OrderedJson byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

OrderedJson special_token(const std::string& content) {
  return {{"content", content}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false},    {"normalized", false},  {"special", true}};
}

int32_t special_id(const TrainedBpe& bpe, const TokenizerFileOptions& options,
                   const std::string& token) {
  for (size_t i = 0; i < options.special_tokens.size(); ++i)
    if (options.special_tokens[i] == token) return narrow<int32_t>(bpe.tokens.size() + i);
  throw Error("\"{}\" is not one of the special tokens", token);
}

OrderedJson post_processor(const TrainedBpe& bpe, const TokenizerFileOptions& options) {
  if (options.bos_token.empty()) return byte_level(false);
  const auto bos = [&](int type_id) -> OrderedJson {
    return {{"SpecialToken", {{"id", options.bos_token}, {"type_id", type_id}}}};
  };
  const auto text = [](const char* id, int type_id) -> OrderedJson {
    return {{"Sequence", {{"id", id}, {"type_id", type_id}}}};
  };
  OrderedJson specials = OrderedJson::object();
  specials[options.bos_token] = {{"id", options.bos_token},
                                 {"ids", {special_id(bpe, options, options.bos_token)}},
                                 {"tokens", {options.bos_token}}};
  const OrderedJson single = OrderedJson::array({bos(0), text("A", 0)});
  const OrderedJson pair = OrderedJson::array({bos(0), text("A", 0), bos(1), text("B", 1)});
  const OrderedJson with_bos = {{"type", "TemplateProcessing"},
                                {"single", single},
                                {"pair", pair},
                                {"special_tokens", specials}};
  return {{"type", "Sequence"}, {"processors", OrderedJson::array({byte_level(false), with_bos})}};
}

}  // namespace

OrderedJson ordered_pre_tokenizer_json(CutPattern pattern) {
  if (pattern == CutPattern::gpt2) return byte_level(true);
  const char* regex = pattern == CutPattern::llama3 ? kLlama3Pattern : kQwenPattern;
  const OrderedJson split = {{"type", "Split"},
                             {"pattern", {{"Regex", regex}}},
                             {"behavior", "Isolated"},
                             {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", OrderedJson::array({split, byte_level(false)})}};
}

nlohmann::json pre_tokenizer_json(CutPattern pattern) {
  return ordered_pre_tokenizer_json(pattern);
}

std::string format_tokenizer_json(const TrainedBpe& bpe, const TokenizerFileOptions& options) {
  OrderedJson added = OrderedJson::array();
  for (const std::string& content : options.special_tokens) {
    OrderedJson token = {{"id", special_id(bpe, options, content)}};
    token.update(special_token(content));
    added.push_back(std::move(token));
  }
  OrderedJson vocab = OrderedJson::object();
  // Added one by one, an ordered object would look every key up in the ones before.
  auto& entries = vocab.get_ref<OrderedJson::object_t&>();
  for (size_t id = 0; id < bpe.tokens.size(); ++id)
    entries.push_back({bpe.tokens[id], OrderedJson(id)});
  OrderedJson merges = OrderedJson::array();
  for (const auto& [left, right] : bpe.merges)
    merges.push_back(bpe.tokens[static_cast<size_t>(left)] + " " +
                     bpe.tokens[static_cast<size_t>(right)]);
  const OrderedJson normalizer =
      options.pattern == CutPattern::qwen ? OrderedJson{{"type", "NFC"}} : OrderedJson();
  const OrderedJson json = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", normalizer},
      {"pre_tokenizer", ordered_pre_tokenizer_json(options.pattern)},
      {"post_processor", post_processor(bpe, options)},
      {"decoder", byte_level(true)},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", false},
        {"vocab", vocab},
        {"merges", merges}}},
  };
  return json.dump(1) + "\n";
}

std::string format_tokenizer_config(const TrainedBpe& bpe, const TokenizerFileOptions& options) {
  OrderedJson json = OrderedJson::object();
  OrderedJson added = OrderedJson::object();
  for (const std::string& content : options.special_tokens)
    added[std::to_string(special_id(bpe, options, content))] = special_token(content);
  json["added_tokens_decoder"] = added;
  const auto name = [&](const char* key, const std::string& token) {
    if (!token.empty()) json[key] = token;
  };
  name("bos_token", options.bos_token);
  name("eos_token", options.eos_token);
  name("pad_token", options.pad_token);
  name("chat_template", options.chat_template);
  json["clean_up_tokenization_spaces"] = false;
  json["model_max_length"] = 131072;
  json["tokenizer_class"] = "PreTrainedTokenizerFast";
  return json.dump(1) + "\n";
}

}  // namespace rhea::tokenizer
