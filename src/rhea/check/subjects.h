// The things that `rhea check` checks, one function each.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/cpu_features.h"
#include "rhea/check/report.h"
#include "rhea/check/values.h"
#include "rhea/components/train_step/step_graphs.h"
#include "rhea/config/trainer_config.h"

namespace rhea::check {

// What comparisons are made with.
struct Means {
  ThreadPool& pool;
  double max_reference_flops;
};

// A dtype and a batch in which something is compared.
struct Setting {
  DType dtype = DType::f32;
  int64_t rows = 1, seq_len = 1;
  bool of_run = false;

  nn::TraceOptions trace() const;
  std::string text() const;
};
// The batch of the run and odd ones (a single token; rows whose lengths are no multiple of
// anything), each in f32 and bf16.
std::vector<Setting> settings_of(const TrainerConfig& config);

// The graphs of a training step in a setting, without accumulation, validation and recomputation.
train_step::StepGraphs graphs_of(const TrainerConfig& config, const Setting& setting);

// Compares and reports; code from outside runs in it, so what it throws is a fault of the subject
// (and nothing is returned).
std::optional<Answer> compare_into(Report& report, std::string_view where, Question question,
                                   const Means& means);

// Why a machine with `isa` does not run a node by this kernel; "" where it does.
std::string refusal(const ir::CpuKernel& kernel, const ir::OpInstance& node, Isa isa);
// How many samples of the op the kernel runs on this machine, and why not the others.
struct SamplesRun {
  size_t count = 0;
  std::vector<std::string> refusals;  // each reason once
};
SamplesRun samples_run(const ir::OpDef& op, const ir::CpuKernel& kernel);

// Rows of the op table from outside, and in-tree rows for which a kernel was added: their contract.
// Returns how many there are.
size_t check_contracts(Report& report);

// Every node that an override replaced, one for all that are alike, against what stood there.
// Returns how many kinds there are.
size_t check_nodes(const TrainerConfig& config, const Means& means, Report& report);

// An optimizer that an override replaced: one update of some parameters by `changed`, against
// `stock`.
void check_update(const TrainerConfig& stock, const TrainerConfig& changed, const Means& means,
                  Report& report);

// Every op of the run's graphs for which a kernel was added, with the kernel and without it.
// Returns how many such ops the table has.
size_t check_kernels(const TrainerConfig& config, const Means& means, Report& report);

}  // namespace rhea::check
