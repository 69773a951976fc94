// `rhea tokenizer encode|decode|train|info`
#include <cstdio>
#include <iostream>

#include "rhea/base/error.h"
#include "rhea/cli/commands.h"
#include "rhea/cli/parse_app.h"
#include "rhea/components/data/tokenizer_commands.h"

namespace rhea::cli {
namespace {

void add_code_options(CLI::App& command, data::TokenizerCodeOptions& options) {
  command.add_option("--tokenizer", options.tokenizer, "folder or tokenizer.json")->required();
  command.add_flag("--jsonl", options.jsonl, "one JSON value a line instead of the whole input");
  command.add_flag("--add_bos,--add-bos", options.add_bos, "exactly one begin of text");
  command.add_flag("--add_eos,--add-eos", options.add_eos, "exactly one end of text");
  command.add_flag("--no_specials,--no-specials", options.no_specials,
                   "nothing around the text but what --add_bos and --add_eos ask for");
  command.add_flag("--plain", options.plain,
                   "special tokens that are spelled in the text are plain text");
}

void add_train_options(CLI::App& command, data::TokenizerTrainOptions& options) {
  command.add_option("--dataset", options.dataset, "data set")->capture_default_str();
  command.add_option("--dataset_path,--dataset-path", options.dataset_path,
                     "file, folder or glob of the data set");
  command.add_option("--text_field,--text-field", options.text_field, "column of the text")
      ->capture_default_str();
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
  std::filesystem::path shown;
  CLI::App* encode = app.add_subcommand("encode", "standard input: text; output: ids");
  add_code_options(*encode, code);
  CLI::App* decode = app.add_subcommand("decode", "standard input: ids; output: text");
  add_code_options(*decode, code);
  CLI::App* train = app.add_subcommand("train", "make a byte-level BPE tokenizer from a data set");
  add_train_options(*train, training);
  CLI::App* info = app.add_subcommand("info", "sizes, special tokens, pipeline");
  info->add_option("--tokenizer", shown, "folder or tokenizer.json")->required();
  if (const auto code_of_help = parse(app, args)) return *code_of_help;
  if (*encode || *decode) {
    check_standard_input();
    if (*encode) data::tokenizer_encode(code, std::cin, std::cout);
    if (*decode) data::tokenizer_decode(code, std::cin, std::cout);
    check_standard_input();
  }
  if (*train) data::tokenizer_train(training, std::cout);
  if (*info) data::tokenizer_info(shown, std::cout);
  return 0;
}

}  // namespace rhea::cli
