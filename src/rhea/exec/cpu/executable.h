// The executable behind compile().
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rhea/exec/cpu/arena.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/exec/cpu/program.h"

namespace rhea::exec::cpu {

std::vector<NodeReport> make_reports(const Program& program);
// The plan with the scratch of all threads.
MemoryPlan with_scratch(MemoryPlan memory, int num_threads);

class ProgramExecutable final : public CpuExecutable {
 public:
  // Reserves the arena, makes the kernels' states and fills the constants.
  ProgramExecutable(Program program, ThreadPool& pool, std::shared_ptr<Arena> arena,
                    const CompileOptions& options);
  ~ProgramExecutable() override;
  ProgramExecutable(const ProgramExecutable&) = delete;
  ProgramExecutable& operator=(const ProgramExecutable&) = delete;

  void bind_input(std::string_view name, const void* data) override;
  void bind_output(std::string_view name, void* data) override;
  void run() override;
  MemoryPlan memory() const override;
  void* planned_input(std::string_view name) const override;
  bool plans_output(std::string_view name) const override;
  const std::vector<NodeReport>& nodes() const override { return reports_; }
  void set_profiling(bool on) override { profiling_ = on; }
  std::vector<double> take_times() override;
  void record_calls(CallLog* log) override;

 private:
  using Time = std::chrono::steady_clock::time_point;

  void fill_constants();
  void check_bindings() const;
  void resolve();
  void run_step(size_t s);
  void run_fenced(size_t s);
  void run_phases(const Step& step);
  void* scratch_of(int worker) const {
    return scratch_ + scratch_places_.begin[static_cast<size_t>(worker)];
  }
  void note(int64_t begin, int64_t end, int worker, Time start);
  void check_inputs() const;
  void check_results(size_t s) const;

  Program program_;
  ThreadPool& pool_;
  std::shared_ptr<Arena> arena_;  // shared by the executables of one trainer
  Mapping constants_;
  std::string name_;
  bool detect_anomaly_;
  bool log_profile_;  // RHEA_LOG=profile
  bool profiling_;

  std::vector<void*> inputs_, outputs_;  // bound memory
  bool resolved_ = false;
  uint64_t generation_ = 0;     // of the arena when the pointers were resolved
  int64_t scratch_offset_ = 0;  // in the arena; -1: in memory of its own
  ScratchPlaces scratch_places_;
  std::byte* scratch_ = nullptr;
  std::vector<ir::Buffer> buffers_;   // of all steps, operands then results
  std::vector<size_t> first_buffer_;  // by step

  // The call in progress, read by the workers.
  ir::KernelArgs args_;
  int64_t count_ = 0, grain_ = 0;  // of the phase's grid
  void (*kernel_)(const ir::KernelArgs&) = nullptr;
  ThreadPool::Body body_, recorded_body_;

  std::vector<NodeReport> reports_;
  std::vector<double> times_;  // seconds by step since take_times()
  CallLog* log_ = nullptr;
  int64_t num_runs_ = 0;
};

}  // namespace rhea::exec::cpu
