// `rhea tokenizer encode, decode, train, info`: everything behind the parsed options.
#pragma once
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace rhea::data {

struct TokenizerCodeOptions {
  std::filesystem::path tokenizer;  // folder or tokenizer.json
  std::string kind = "auto";        // which reader, where the files are of several
  bool jsonl = false;    // one JSON string (decode: array of ids) a line instead of the whole input
  bool add_bos = false;  // --add_bos: exactly one, whatever the files say
  bool add_eos = false;
  // --no_specials: nothing around the text, unless add_bos or add_eos ask for it
  bool no_specials = false;
  bool plain = false;             // special tokens spelled in the text are plain text
  bool truncate_and_pad = false;  // as tokenizer.json says
};

// Reads all of `input` and writes the ids on one line; with jsonl a JSON array of ids for each JSON
// string.
void tokenizer_encode(const TokenizerCodeOptions& options, std::istream& input,
                      std::ostream& output);
// The inverse with the same options: the special tokens that encoding puts around a text are taken
// off again. Ids are separated by white space; the text is written as it is, without a line end of
// its own. jsonl: arrays to JSON strings.
void tokenizer_decode(const TokenizerCodeOptions& options, std::istream& input,
                      std::ostream& output);
// Sizes, special tokens and pipeline, and the kinds that the files are of.
void tokenizer_info(const std::filesystem::path& tokenizer, const std::string& kind,
                    std::ostream& output);

struct TokenizerTrainOptions {
  std::string dataset = "debug_text";
  std::optional<std::string> dataset_path;
  std::string text_field = "text";
  int64_t vocab_size = 2048;
  int64_t min_frequency = 2;
  std::string pattern = "llama3";  // gpt2, llama3, qwen
  // Empty: begin, end and padding of a text, headers and end of a chat turn, reserved ones: 22.
  std::vector<std::string> special_tokens;
  std::string bos_token = "<|begin_of_text|>";
  std::string eos_token = "<|end_of_text|>";
  std::string pad_token = "<|pad|>";
  std::filesystem::path output;  // folder, made if absent
};

// Writes tokenizer.json and tokenizer_config.json and a report.
void tokenizer_train(const TokenizerTrainOptions& options, std::ostream& report);

}  // namespace rhea::data
