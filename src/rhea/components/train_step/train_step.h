// One rank's training step on the CPU: owns parameters, gradients and optimizer state, and runs the
// step's graphs on them.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/aligned.h"
#include "rhea/base/thread_pool.h"
#include "rhea/components/train_step/step_graphs.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/nn/rope_buffers.h"

namespace rhea::train_step {

// Rows of one microbatch, T = rows * seq_len entries each.
struct Batch {
  const int32_t* tokens = nullptr;
  const int32_t* labels = nullptr;
  const int32_t* positions = nullptr;
  // 1 = a token, 0 = padding, which counts for no expert; null: all are tokens.
  const int32_t* is_token = nullptr;
};

struct StateTensor {
  std::string name;  // as in the graphs
  ir::Type type;
  void* data = nullptr;
};

// Bytes by class. Gradients, prepared weights and activations lie in one arena, which is smaller
// than their sum: each has its bytes only while it is needed.
struct StepMemory {
  int64_t parameters = 0, optimizer = 0;
  int64_t gradients = 0;
  int64_t prepared = 0;     // casts and packed copies of the parameters
  int64_t activations = 0;  // values and workspaces of one graph: most that live at once
  int64_t arena = 0;        // of the three above
  int64_t scratch = 0;      // per-thread buffers, tables and constants
  int64_t shared() const { return gradients + prepared + activations - arena; }
  int64_t total() const { return parameters + optimizer + arena + scratch; }
};

// What the step would need and do, without allocating anything.
struct StepPlan {
  StepMemory memory;
  // In the order in which they run.
  std::vector<std::pair<std::string, exec::cpu::PlanReport>> graphs;
  exec::cpu::ArenaPeak peak;
};
StepPlan plan_step(const StepGraphs& graphs, int num_threads,
                   const exec::cpu::CompileOptions& options);

class TrainStep {
 public:
  TrainStep(StepGraphs graphs, const nn::TraceOptions& trace,
            const exec::cpu::CompileOptions& compile, ThreadPool& pool);
  ~TrainStep();

  const StepGraphs& graphs() const { return graphs_; }
  // Whole tensors in the order of graphs().parameters; state tensors named "<state>.<fqn>".
  std::span<const StateTensor> parameters() const { return parameters_; }
  std::span<const StateTensor> frozen() const { return frozen_; }  // of graphs().frozen
  std::span<const StateTensor> constants() const { return constants_; }
  // Between forward_backward and update.
  std::span<const StateTensor> gradients() const { return gradients_; }
  std::span<const StateTensor> optimizer_state() const { return optimizer_; }
  // Between forward_backward and update: tokens of the step that chose each expert, i32 [E], in the
  // order of graphs().balances.
  std::span<const StateTensor> loads() const { return loads_; }

  // Draws every parameter (frozen ones too) and constant from (seed, FQN of the part, element). The
  // optimizer's state is zero from the start.
  void initialise(uint64_t seed);
  // The same for those parts alone whose FQN `wanted` names.
  void initialise(uint64_t seed, const std::function<bool(const std::string& fqn)>& wanted);
  // To be called after parameters were written from outside.
  void parameters_changed();

  // Forward and backward of one microbatch; the first after an update overwrites the gradients,
  // later ones add to them. Returns loss_scale * sum of the cross entropies.
  double forward_backward(const Batch& batch, double loss_scale);
  // 2-norm over all gradients as forward_backward left them; NaN or Inf when one of them is.
  // Writing to gradients() does not change it: products have summed up squares already
  // (norm_in_products).
  double gradient_norm();
  // Gradients are multiplied by `clip` first. `lr` has one rate per param group, `step` counts
  // from 1.
  void update(int64_t step, std::span<const double> lr, double clip);
  // Forgets the gradients of this step (a step that is skipped).
  void discard_gradients();
  // Forward only; needs StepOptions::validates.
  double evaluate(const Batch& batch, double loss_scale);

  const StepMemory& memory() const { return memory_; }
  // Executables by name, for profiles.
  std::vector<std::pair<std::string, exec::cpu::CpuExecutable*>> executables();

 private:
  struct Scalars;
  void set_batch(const Batch& batch);
  void bind(exec::cpu::CpuExecutable& executable, const ir::Graph& graph);
  std::vector<StateTensor> allocate(const std::vector<std::pair<std::string, ir::Type>>& tensors);

  StepGraphs graphs_;
  nn::TraceOptions trace_;
  ThreadPool& pool_;
  std::vector<std::shared_ptr<void>> blocks_;
  std::vector<StateTensor> parameters_, frozen_, constants_, optimizer_;
  std::vector<StateTensor> gradients_, loads_;  // in the arena
  nn::RopeBuffers ropes_;
  std::unique_ptr<Scalars> scalars_;
  std::unique_ptr<exec::cpu::CpuExecutable> prepare_, microbatch_, accumulate_, norm_, update_,
      evaluate_;
  AlignedVector<int32_t> tokens_, labels_, positions_, is_token_;
  bool prepared_is_current_ = false;
  bool has_gradients_ = false;
  StepMemory memory_;
};

}  // namespace rhea::train_step
