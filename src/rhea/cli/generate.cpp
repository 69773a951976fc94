// `rhea generate`
#include "rhea/generate.h"

#include <cstdio>
#include <limits>

#include "rhea/base/error.h"
#include "rhea/cli/parse_app.h"
#include "rhea/components/tokenizer/tokenizer.h"

namespace rhea::cli {

int cmd_generate(Args args) {
  std::filesystem::path folder, tokenizer_path;
  std::string prompt;
  int64_t max_new_tokens = 100;
  SamplingOptions sampling;
  int threads = 0;
  bool print_ids = false;
  CLI::App app("Text from a model folder", "rhea generate");
  app.add_option("--model", folder,
                 "folder with config.json, safetensors and tokenizer.json, or step-N of a run")
      ->required();
  app.add_option("--tokenizer", tokenizer_path,
                 "folder or tokenizer.json; default: the model's folder, or that of the run");
  app.add_option("--prompt", prompt, "text to continue; empty: begin of text");
  app.add_option("--max_new_tokens", max_new_tokens, "tokens to add")
      ->check(integer_in(1, std::numeric_limits<int32_t>::max()))
      ->capture_default_str();
  app.add_option("--temperature", sampling.temperature, "0: the most likely token")
      ->check(number_in(0, 1e6))
      ->capture_default_str();
  app.add_option("--top_k", sampling.top_k, "only the k most likely tokens, 0: all")
      ->check(integer_in(0, std::numeric_limits<int32_t>::max()))
      ->capture_default_str();
  app.add_option("--top_p", sampling.top_p, "only the likeliest tokens that together reach it")
      ->check(number_in(0, 1))
      ->capture_default_str();
  app.add_option("--seed", sampling.seed, "of the draws")
      ->check(integer_in(0, std::numeric_limits<int64_t>::max()))
      ->capture_default_str();
  add_threads_option(app, threads);
  app.add_flag("--ids", print_ids, "print token ids, prompt included, instead of text");
  if (const auto done = parse(app, args)) return *done;

  ThreadPool pool(threads);
  const PublishedModel model(folder, &pool);
  if (tokenizer_path.empty()) tokenizer_path = model.files().tokenizer;
  if (!std::filesystem::exists(tokenizer_path))
    throw Error(
        "the tokenizer of {} was read from {}, which is not there; give its place with "
        "--tokenizer",
        folder.string(), tokenizer_path.string());
  const auto tokenizer = tokenizer::load_tokenizer(tokenizer_path);
  tokenizer::check_vocabulary(*tokenizer, model.decoder().vocab_size());
  std::vector<int32_t> ids = tokenizer->encode(
      prompt,
      {.add_bos = tokenizer->bos_id() ? std::optional(true) : std::nullopt, .add_eos = false});
  std::vector<int32_t> stop;
  if (const auto eos = tokenizer->eos_id()) stop.push_back(*eos);
  Generator generator(model, static_cast<int64_t>(ids.size()) + max_new_tokens, pool);
  // Text is printed as it grows; the last character may still change, so only a stable prefix is
  // shown.
  std::vector<int32_t> shown = ids;
  std::string printed = print_ids ? "" : tokenizer->decode(ids, true);
  std::fputs(printed.c_str(), stdout);
  const auto show = [&](int32_t id) {
    shown.push_back(id);
    if (print_ids) return;
    const std::string text = tokenizer->decode(shown, true);
    if (text.ends_with("\xEF\xBF\xBD") || !text.starts_with(printed)) return;
    std::fputs(text.c_str() + printed.size(), stdout);
    std::fflush(stdout);
    printed = text;
  };
  generator.generate(ids, max_new_tokens, sampling, stop, show);
  if (print_ids) {
    for (size_t i = 0; i < shown.size(); ++i)
      std::fprintf(stdout, "%s%d", i == 0 ? "" : " ", shown[i]);
  }
  std::fputs("\n", stdout);
  return 0;
}

}  // namespace rhea::cli
