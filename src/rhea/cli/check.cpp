// `rhea check`
#include "rhea/check/check.h"

#include <iostream>

#include "rhea/cli/commands.h"
#include "rhea/cli/run_config.h"

namespace rhea::cli {

int cmd_check(Args args) {
  if (print_run_help(
          args,
          "usage: rhea check --module M --config F --override.imports my_kernels.cpp "
          "[--section.option value ...]\n\n"
          "Compares what comes from outside with what it replaces, before anyone trains with it:\n"
          "  each node that an override replaced: results and gradients of inputs and parameters;\n"
          "  each op of the run for which a kernel was added: with the kernel and without it;\n"
          "  each op from outside: the contract of the op table on its samples.\n"
          "On the batch of the run and on odd ones, in f32 and bf16, against the definition in\n"
          "f64: largest absolute and relative difference, units in the last place, equal bits in\n"
          "several runs and with several numbers of threads, time of both.\n"
          "Tolerances, relative to the largest element: f32 1e-5, and 0 where data is only moved\n"
          "or rotated; bf16 1e-2.\n"
          "A kernel that no node of the run (or, where the run lacks its op, no sample) runs is "
          "told\n"
          "as NOT CHECKED, with the reasons why it refuses.\n"
          "exit code: 0 within the tolerances, 1 above or not checked, 2 an error of the command "
          "line or a file\n"))
    return 0;
  const bool good = check::run_check(plan_config(args), std::cout);
  std::cout.flush();
  return good ? 0 : 1;
}

}  // namespace rhea::cli
