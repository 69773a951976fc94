// The subjects one after the other.
#include "rhea/check/check.h"

#include "rhea/base/error.h"
#include "rhea/check/subjects.h"

namespace rhea::check {

bool run_check(const TrainerConfig& config, std::ostream& out) {
  ThreadPool pool(static_cast<int>(config.executor.num_threads));
  Report report(out);
  size_t found = check_contracts(report);
  found += check_nodes(config, pool, report);
  found += check_kernels(config, pool, report);
  if (found == 0) {
    throw Error(
        "nothing to check: no override replaced a node, and no op and no kernel comes from "
        "outside; "
        "name a file with --override.imports my_kernels.cpp");
  }
  return report.finish();
}

}  // namespace rhea::check
