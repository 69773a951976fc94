// The subjects one after the other.
#include "rhea/check/check.h"

#include <fmt/format.h>

#include <new>

#include "rhea/base/error.h"
#include "rhea/check/subjects.h"
#include "rhea/plugin/throw_site.h"

namespace rhea::check {

std::optional<Answer> compare_into(Report& report, std::string_view where, Question question,
                                   const Means& means) {
  try {
    question.max_reference_flops = means.max_reference_flops;
    Answer answer = compare(question, means.pool);
    report.answer(where, question, answer);
    return answer;
  } catch (const std::bad_alloc&) {
    throw;  // has an exit code of its own
  } catch (const std::exception& error) {
    const std::string site = plugin::throw_site();
    report.fault(
        fmt::format("{}: threw{}: {}", where, site.empty() ? "" : " at " + site, error.what()));
    return std::nullopt;
  }
}

bool run_check(const TrainerConfig& config, std::ostream& out, const CheckOptions& options) {
  ThreadPool pool(static_cast<int>(config.executor.num_threads));
  Report report(out);
  const Means means{pool, options.max_reference_flops};
  size_t found = check_contracts(report);
  found += check_nodes(config, means, report);
  found += check_kernels(config, means, report);
  if (found == 0) {
    throw Error(
        "nothing to check: no override replaced a node, and no op and no kernel comes from "
        "outside; "
        "name a file with --override.imports my_kernels.cpp");
  }
  return report.finish();
}

}  // namespace rhea::check
