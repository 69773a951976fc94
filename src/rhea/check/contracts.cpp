// The contract of the op table for what comes from outside.
#include "rhea/check/subjects.h"
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

}  // namespace

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
    report.end_subject();
  }
  return count;
}

}  // namespace rhea::check
