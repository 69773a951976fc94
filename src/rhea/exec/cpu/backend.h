// The CPU backend: fuse, choose kernels, plan memory, run on the thread pool.
#pragma once
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/cpu_features.h"
#include "rhea/base/thread_pool.h"
#include "rhea/exec/executable.h"
#include "rhea/passes/direction.h"

namespace rhea::exec::cpu {

// 64-byte aligned memory in huge pages where the system gives them, zeroed.
// Shared by the executables of one trainer, which never run at the same time.
class Arena;

struct CompileOptions {
  Isa isa = active_isa();
  // compile.no_enable: one kernel call per node, no clusters, every result in a buffer of its own;
  // same bits.
  bool interpret = false;
  bool detect_anomaly =
      false;  // after each node look for NaN and Inf; Error names op, FQN and source line
  // False: without the kernels that plugins added (ops/table.h), to compare with.
  bool added_kernels = true;
  std::vector<std::string> disable_passes;
  std::string dump_graphs;     // folder, "" = off
  std::string name = "graph";  // for dumps, profiles and errors
};

// One line per kernel call, for `rhea plan` and the profiler.
struct NodeReport {
  std::string op, fqn, types, kernel, note;  // note: why, and which kernels refused
  ir::Cost cost;
  int64_t output_bytes = 0;  // in the arena: results of the graph are memory of the caller
  ir::Type type;  // of the first operand: its dtype tells the peak that flops are measured against
  passes::Direction direction = passes::Direction::forward;  // where the graph has a way back
};

// Memory of the arena from one kernel call to another, both included (entries of nodes()); the
// first one writes it.
struct ArenaValue {
  int32_t first_call = 0, last_call = 0;
  int64_t offset = 0, bytes = 0;
};

// When one kernel call began and ended; `node` is the entry of nodes().
struct CallTime {
  int32_t node = 0;
  std::chrono::steady_clock::time_point begin, end;
};

// Items of one phase of a call that a worker ran one after the other, of its own share or of
// another's.
struct WorkerTime {
  int32_t call = 0;  // of CallLog::calls
  int32_t phase = 0;
  int64_t first_item = 0, end_item = 0;
  bool stolen = false;
  std::chrono::steady_clock::time_point begin, end;
};

struct CallLog {
  std::vector<CallTime> calls;
  std::vector<std::vector<WorkerTime>> workers;  // by thread of the pool
};

class CpuExecutable : public Executable {
 public:
  // Memory of an input that another graph of the sequence makes; null: the caller binds it. Valid
  // once all executables that share the arena are compiled.
  virtual void* planned_input(std::string_view name) const = 0;
  // Is the output such a tensor of another graph?
  virtual bool plans_output(std::string_view name) const = 0;
  virtual const std::vector<NodeReport>& nodes() const = 0;
  // Seconds spent per entry of nodes() since the last call, when profiling is on.
  virtual void set_profiling(bool on) = 0;
  virtual std::vector<double> take_times() = 0;
  // Appends every call of the following runs to `log`; null ends it.
  virtual void record_calls(CallLog* log) = 0;
};

// Planning only: what compile() would choose and reserve, nothing is allocated (works for any
// size).
struct PlanReport {
  MemoryPlan memory;
  std::vector<NodeReport> nodes;
  std::vector<ArenaValue> values;
};
PlanReport plan(const ir::Graph& graph, int num_threads, const CompileOptions& options = {});

// `arena` grows to what the executable needs; pass the same one to all executables of a trainer.
std::unique_ptr<CpuExecutable> compile(const ir::Graph& graph, ThreadPool& pool,
                                       std::shared_ptr<Arena> arena,
                                       const CompileOptions& options = {});

// One of the graphs that take turns, round after round, in this order.
struct TurnGraph {
  const ir::Graph* graph = nullptr;
  CompileOptions options;
  bool optional = false;  // may be left out of a round
  bool repeats = false;   // may run several times in a row
};
// What lies in the arena in the step in which most of it is in use.
struct ArenaPeak {
  enum class Kind : uint8_t { value, workspace, tensor };
  struct Buffer {
    std::string op, fqn;  // of the node that makes it; tensors between graphs: the name
    int64_t bytes = 0;
    Kind kind = Kind::value;
  };
  size_t graph = 0;     // the turn that the step belongs to
  std::string op, fqn;  // of the step
  std::vector<Buffer> buffers;
};
struct TurnsPlan {
  std::vector<PlanReport> graphs;  // one per turn
  ArenaPeak peak;
};
// Compiles them for one arena. What one graph makes for another (an output with the name of an
// input there) is not bound by the caller: it lies in the arena from its first write to its last
// read, and its bytes serve other values for the rest of the round. MemoryPlan::arena is the size
// of the whole.
TurnsPlan plan_turns(std::span<const TurnGraph> graphs, int num_threads);
std::vector<std::unique_ptr<CpuExecutable>> compile_turns(std::span<const TurnGraph> graphs,
                                                          ThreadPool& pool,
                                                          const std::shared_ptr<Arena>& arena);
std::shared_ptr<Arena> make_arena();
// Memory for state that outlives steps (parameters, gradients, optimizer): zeros in huge pages,
// taken from the system when they are first touched.
std::shared_ptr<void> allocate_state(int64_t bytes);

}  // namespace rhea::exec::cpu
