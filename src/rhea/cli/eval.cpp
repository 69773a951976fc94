// `rhea eval`
#include "rhea/eval.h"

#include <cstdio>
#include <limits>

#include <fmt/format.h>

#include "rhea/cli/parse_app.h"

namespace rhea::cli {

int cmd_eval(Args args) {
  EvalOptions options;
  std::string dtype = "f32";
  int threads = 0;
  constexpr int64_t kMany = std::numeric_limits<int32_t>::max();
  CLI::App app("Loss and perplexity of a model on a text, per token and per byte", "rhea eval");
  app.add_option("--model", options.model,
                 "folder with config.json, safetensors and tokenizer, or step-N of a run")
      ->required();
  app.add_option("--tokenizer", options.tokenizer, "another tokenizer than the model's");
  add_dataset_options(app, options.dataset, options.dataset_path, options.text_field);
  app.add_flag("--whole_files,--whole-files", options.whole_files,
               "data set text: a document is a file, not a block up to a blank line");
  app.add_option("--max_documents,--max-documents", options.max_documents, "0: all")
      ->check(integer_in(0, std::numeric_limits<int64_t>::max()))
      ->capture_default_str();
  app.add_option("--seq_len,--seq-len", options.seq_len, "tokens that the model sees at once")
      ->check(integer_in(1, kMany))
      ->capture_default_str();
  app.add_option("--stride", options.stride,
                 "tokens between the begins of two windows of a long document; 0: seq_len")
      ->check(integer_in(0, kMany))
      ->capture_default_str();
  app.add_option("--dtype", dtype, "of the weights in memory and of the computation")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  add_threads_option(app, threads);
  if (const auto done = parse(app, args)) return *done;
  options.dtype = parse_dtype(dtype);
  ThreadPool pool(threads);
  const EvalResult result = evaluate(options, pool);
  fmt::print(
      "documents               {}\n"
      "bytes                   {}\n"
      "tokens                  {}\n"
      "loss per token          {:.6f}\n"
      "perplexity per token    {:.4f}\n"
      "perplexity per byte     {:.6f}\n"
      "bits per byte           {:.6f}\n",
      result.num_documents, result.num_bytes, result.num_tokens, result.loss_per_token(),
      result.perplexity_per_token(), result.perplexity_per_byte(), result.bits_per_byte());
  return 0;
}

}  // namespace rhea::cli
