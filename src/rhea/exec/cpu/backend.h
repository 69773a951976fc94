// The CPU backend: fuse, choose kernels, plan memory, run on the thread pool.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "rhea/base/cpu_features.h"
#include "rhea/base/thread_pool.h"
#include "rhea/exec/executable.h"

namespace rhea::exec::cpu {

// 64-byte aligned memory in huge pages where the system gives them, zeroed and touched by the pool.
// Shared by the executables of one trainer, which never run at the same time.
class Arena;

struct CompileOptions {
  Isa isa = active_isa();
  // compile.no_enable: one kernel call per node, no clusters, every result in a buffer of its own;
  // same bits.
  bool interpret = false;
  bool detect_anomaly =
      false;  // after each node look for NaN and Inf; Error names op, FQN and source line
  std::vector<std::string> disable_passes;
  std::string dump_graphs;     // folder, "" = off
  std::string name = "graph";  // for dumps, profiles and errors
};

// One line per kernel call, for `rhea plan` and the profiler.
struct NodeReport {
  std::string op, fqn, types, kernel, note;  // note: why, and which kernels refused
  ir::Cost cost;
  int64_t output_bytes = 0;
  ir::Type type;  // of the first operand: its dtype tells the peak that flops are measured against
};

// When one kernel call began and ended; `node` is the entry of nodes().
struct CallTime {
  int32_t node = 0;
  std::chrono::steady_clock::time_point begin, end;
};

class CpuExecutable : public Executable {
 public:
  virtual const std::vector<NodeReport>& nodes() const = 0;
  // Seconds spent per entry of nodes() since the last call, when profiling is on.
  virtual void set_profiling(bool on) = 0;
  virtual std::vector<double> take_times() = 0;
  // Appends every call of the following runs to `calls`; null ends it.
  virtual void record_calls(std::vector<CallTime>* calls) = 0;
};

// Planning only: what compile() would choose and reserve, nothing is allocated (works for any
// size).
struct PlanReport {
  MemoryPlan memory;
  std::vector<NodeReport> nodes;
};
PlanReport plan(const ir::Graph& graph, int num_threads, const CompileOptions& options = {});

// `arena` grows to what the executable needs; pass the same one to all executables of a trainer.
std::unique_ptr<CpuExecutable> compile(const ir::Graph& graph, ThreadPool& pool,
                                       std::shared_ptr<Arena> arena,
                                       const CompileOptions& options = {});
std::shared_ptr<Arena> make_arena();
// Memory for state that outlives steps (parameters, gradients, optimizer): huge pages, zeroed,
// first touched by the pool.
std::shared_ptr<void> allocate_state(int64_t bytes, ThreadPool& pool);

}  // namespace rhea::exec::cpu
