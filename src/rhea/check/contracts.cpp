// The contract of the op table for what comes from outside.
#include <fmt/ranges.h>

#include <algorithm>

#include "rhea/check/subjects.h"
#include "rhea/ops/contract/case.h"
#include "rhea/ops/contract/contract.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/table.h"

namespace rhea::check {
namespace {

void check_row(const ops::OpDef& op, Report& report) {
  for (const ops::ContractCheck& check : ops::contract_checks()) {
    ops::Findings findings;
    try {
      check.run(op, findings);
    } catch (const std::exception& error) {
      findings.fail("{}", error.what());
    }
    for (const std::string& text : findings.notes()) report.note(text);
    for (const std::string& text : findings.failures())
      report.fault(fmt::format("{}: {}", check.name, text));
  }
}

// "kernel mine runs none of the samples: f32 only"; "" where it runs one.
std::string no_sample(const ops::OpDef& op, const ir::CpuKernel& kernel) {
  const SamplesRun samples = samples_run(op, kernel);
  if (samples.count > 0) return "";
  return fmt::format("kernel {} runs none of the samples: {}", kernel.name,
                     samples.refusals.empty()
                         ? "there are none"
                         : fmt::format("{}", fmt::join(samples.refusals, "; ")));
}

// A row's author chooses its samples, so each of its kernels can have one. Samples of a row of the
// library may all be beyond what an added kernel does; the nodes of the run are compared then.
void check_samples(const ops::OpDef& op, bool outside, Report& report) {
  if (outside)
    for (const ir::CpuKernel& kernel : op.cpu)
      if (const std::string text = no_sample(op, kernel); !text.empty())
        report.not_checked(text + "; give the row a sample that it takes");
  bool any = outside;
  for (const ops::AddedKernel& added : ops::added_kernels(op)) {
    const std::string text = no_sample(op, added.kernel);
    any |= text.empty();
    if (!text.empty()) report.note(text);
  }
  if (!any) report.nothing_to_compare("what they do is compared on the nodes of the run alone");
}

}  // namespace

std::string refusal(const ir::CpuKernel& kernel, const ir::OpInstance& node, Isa isa) {
  if (kernel.isa > isa)
    return fmt::format("needs {}, have {}", isa_name(kernel.isa), isa_name(isa));
  return kernel.accepts ? kernel.accepts(node) : "";
}

SamplesRun samples_run(const ir::OpDef& op, const ir::CpuKernel& kernel) {
  SamplesRun run;
  for (const ir::Sample& sample : ops::samples_of(op)) {
    const std::string why = refusal(kernel, ops::make_case(op, sample)->instance(), detected_isa());
    if (why.empty())
      ++run.count;
    else if (std::ranges::find(run.refusals, why) == run.refusals.end())
      run.refusals.push_back(why);
  }
  return run;
}

size_t check_contracts(Report& report) {
  size_t count = 0;
  for (const ops::OpDef* op : ops::all_ops()) {
    const bool outside = ops::origin_of(*op) != ops::kInTree;
    const auto kernels = ops::added_kernels(*op);
    if (!outside && kernels.empty()) continue;
    ++count;
    const std::string origin(outside ? ops::origin_of(*op) : kernels[0].origin);
    report.subject(outside ? fmt::format("op {} of {}: the contract of the op table on its samples",
                                         op->name, origin)
                           : fmt::format("kernels of {} for {}: the contract on the op's samples",
                                         origin, op->name));
    check_row(*op, report);
    check_samples(*op, outside, report);
    report.end_subject();
  }
  return count;
}

}  // namespace rhea::check
