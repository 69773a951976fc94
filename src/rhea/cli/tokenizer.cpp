// `rhea tokenizer encode|decode|train|shard|info`
#include <cstdio>
#include <iostream>
#include <limits>

#include "rhea/base/error.h"
#include "rhea/cli/commands.h"
#include "rhea/cli/parse_app.h"
#include "rhea/components/data/token_shards.h"
#include "rhea/components/data/tokenizer_commands.h"

namespace rhea::cli {
namespace {

void add_kind(CLI::App& command, std::string& kind) {
  command
      .add_option("--kind", kind,
                  "auto, or the reader where the files are of several: tokenizer_json, merges, "
                  "sentencepiece, tiktoken, words")
      ->capture_default_str();
}

void add_code_options(CLI::App& command, data::TokenizerCodeOptions& options) {
  command.add_option("--tokenizer", options.tokenizer, "folder or tokenizer.json")->required();
  add_kind(command, options.kind);
  command.add_flag("--jsonl", options.jsonl, "one JSON value a line instead of the whole input");
  command.add_flag("--add_bos,--add-bos", options.add_bos, "exactly one begin of text");
  command.add_flag("--add_eos,--add-eos", options.add_eos, "exactly one end of text");
  command.add_flag("--no_specials,--no-specials", options.no_specials,
                   "nothing around the text but what --add_bos and --add_eos ask for");
  command.add_flag("--plain", options.plain,
                   "special tokens that are spelled in the text are plain text");
}

void add_train_options(CLI::App& command, data::TokenizerTrainOptions& options) {
  add_dataset_options(command, options.dataset, options.dataset_path, options.text_field);
  command.add_option("--vocab_size,--vocab-size", options.vocab_size, "entries, specials included")
      ->capture_default_str();
  command
      .add_option("--min_frequency,--min-frequency", options.min_frequency,
                  "a pair must be seen this often to be merged")
      ->capture_default_str();
  command.add_option("--pattern", options.pattern, "how text is cut first: gpt2, llama3, qwen")
      ->capture_default_str();
  command
      .add_option("--special_tokens,--special-tokens", options.special_tokens,
                  "comma list; default: 22 of Llama 3's kind")
      ->delimiter(',');
  command.add_option("--bos_token,--bos-token", options.bos_token, "begin of text")
      ->capture_default_str();
  command.add_option("--eos_token,--eos-token", options.eos_token, "end of text")
      ->capture_default_str();
  command.add_option("--pad_token,--pad-token", options.pad_token, "padding")
      ->capture_default_str();
  command.add_option("--output", options.output, "folder to write to")->required();
}

struct ShardWords {
  data::TokenShardOptions options;
  std::string packing = "concat", on_bad_row = "stop";
  bool plain = false;
};

void add_shard_options(CLI::App& command, ShardWords& words) {
  data::DataLoaderOptions& data = words.options.data;
  command.add_option("--tokenizer", words.options.tokenizer, "folder or file")->required();
  add_kind(command, words.options.kind);
  add_dataset_options(command, data.dataset, data.dataset_path, data.text_field);
  command.add_flag("--whole_files,--whole-files", data.text_whole_files,
                   "data set text: a document is a file, not a block up to a blank line");
  command.add_option("--seq_len,--seq-len", data.seq_len, "tokens per row")
      ->check(integer_in(1, std::numeric_limits<int32_t>::max()))
      ->capture_default_str();
  command.add_option("--packing", words.packing, "concat, first_fit, greedy")
      ->capture_default_str();
  command
      .add_option("--num_packing_bins,--num-packing-bins", data.num_packing_bins,
                  "open rows of first_fit")
      ->check(integer_in(1, 1 << 20))
      ->capture_default_str();
  command.add_flag("--shuffle", data.shuffle, "documents in the order that --seed gives");
  command.add_option("--seed", data.seed, "of the order")->capture_default_str();
  command.add_option("--on_bad_row,--on-bad-row", words.on_bad_row, "stop, skip")
      ->capture_default_str();
  command.add_flag("--plain", words.plain,
                   "special tokens that are spelled in the text are plain text");
  command.add_option("--threads", data.num_workers, "threads that tokenise")
      ->check(integer_in(0, 1024))
      ->capture_default_str();
  command
      .add_option("--rows_per_file,--rows-per-file", words.options.rows_per_file,
                  "0: about 16 million tokens")
      ->check(integer_in(0, std::numeric_limits<int32_t>::max()))
      ->capture_default_str();
  command.add_option("--output", words.options.output, "folder to write to")->required();
}

void run_shard(ShardWords& words) {
  words.options.data.packing = data::parse_packing(words.packing);
  words.options.data.on_bad_row = data::parse_on_bad_row(words.on_bad_row);
  if (words.plain)
    words.options.data.special_tokens_in_text = tokenizer::SpecialTokensInText::plain;
  data::write_token_shards(words.options, std::cout);
}

// Input that cannot be read (closed, a folder, a broken disk) is no empty text. std::cin reads
// through stdin, which remembers the failure.
void check_standard_input() {
  std::cin.peek();
  if (std::ferror(stdin) != 0)
    throw Error("standard input cannot be read; is it closed, or a folder?");
}

}  // namespace

int cmd_tokenizer(Args args) {
  CLI::App app("text to token ids and back", "rhea tokenizer");
  app.require_subcommand(1);
  data::TokenizerCodeOptions code;
  data::TokenizerTrainOptions training;
  ShardWords sharding;
  std::filesystem::path shown;
  std::string shown_kind = "auto";
  CLI::App* encode = app.add_subcommand("encode", "standard input: text; output: ids");
  add_code_options(*encode, code);
  encode->add_flag(
      "--truncate_and_pad,--truncate-and-pad", code.truncate_and_pad,
      "shorten and fill up as the fields truncation and padding of tokenizer.json say");
  CLI::App* decode = app.add_subcommand("decode", "standard input: ids; output: text");
  add_code_options(*decode, code);
  CLI::App* train = app.add_subcommand("train", "make a byte-level BPE tokenizer from a data set");
  add_train_options(*train, training);
  CLI::App* shard =
      app.add_subcommand("shard", "write a data set as token files for the data set `tokens`");
  add_shard_options(*shard, sharding);
  CLI::App* info = app.add_subcommand("info", "sizes, special tokens, pipeline");
  info->add_option("--tokenizer", shown, "folder or tokenizer.json")->required();
  add_kind(*info, shown_kind);
  if (const auto code_of_help = parse(app, args)) return *code_of_help;
  if (*encode || *decode) {
    check_standard_input();
    if (*encode) data::tokenizer_encode(code, std::cin, std::cout);
    if (*decode) data::tokenizer_decode(code, std::cin, std::cout);
    check_standard_input();
  }
  if (*train) data::tokenizer_train(training, std::cout);
  if (*shard) run_shard(sharding);
  if (*info) data::tokenizer_info(shown, shown_kind, std::cout);
  return 0;
}

}  // namespace rhea::cli
