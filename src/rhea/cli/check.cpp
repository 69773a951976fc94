// `rhea check`
#include "rhea/check/check.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>

#include "rhea/base/error.h"
#include "rhea/cli/commands.h"
#include "rhea/cli/run_config.h"

namespace rhea::cli {
namespace {

double gflop(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number) ||
      number < 0)
    throw Error("{} '{}': expected a number of GFLOP, 0 or more, such as 250",
                check::kReferenceOption, text);
  return number;
}

// Takes the command's own option out of the words of the run.
check::CheckOptions take_options(std::vector<std::string>& words) {
  check::CheckOptions options;
  for (auto word = words.begin(); word != words.end();) {
    std::string name = word->substr(0, word->find('='));
    std::replace(name.begin() + std::min<std::ptrdiff_t>(2, std::ssize(name)), name.end(), '-',
                 '_');
    if (name != check::kReferenceOption) {
      ++word;
      continue;
    }
    auto end = word + 1;
    std::string value;
    if (const size_t at = word->find('='); at != std::string::npos)
      value = word->substr(at + 1);
    else if (end != words.end())
      value = *end++;
    options.max_reference_flops = 1e9 * gflop(value);
    word = words.erase(word, end);
  }
  return options;
}

}  // namespace

int cmd_check(Args args) {
  if (print_run_help(
          args,
          "usage: rhea check --module M --config F --override.imports my_kernels.cpp "
          "[--max_reference_gflop 250] [--section.option value ...]\n\n"
          "Compares what comes from outside with what it replaces, before anyone trains with it:\n"
          "  each node that an override replaced: results and gradients of inputs and parameters;\n"
          "  each op of the run for which a kernel was added: with the kernel and without it;\n"
          "  each op from outside: the contract of the op table on its samples.\n"
          "On the batch of the run and on odd ones, in f32 and bf16, against the definition in\n"
          "f64: largest absolute and relative difference, units in the last place, equal bits in\n"
          "several runs and with several numbers of threads, time of both.\n"
          "Tolerances, relative to the largest element: f32 1e-5, and 0 where data is only moved\n"
          "or rotated; bf16 1e-2.\n"
          "The definition in f64 is evaluated up to --max_reference_gflop a comparison, where its\n"
          "memory is there; what is larger is compared with stock alone, and the verdict says so.\n"
          "A kernel that no node of the run (or, where the run lacks its op, no sample) runs is "
          "told\n"
          "as NOT CHECKED, with the reasons why it refuses.\n"
          "exit code: 0 within the tolerances, 1 above or not checked, 2 an error of the command "
          "line or a file\n"))
    return 0;
  std::vector<std::string> words(args.begin(), args.end());
  const check::CheckOptions options = take_options(words);
  const bool good = check::run_check(plan_config(words), std::cout, options);
  std::cout.flush();
  return good ? 0 : 1;
}

}  // namespace rhea::cli
