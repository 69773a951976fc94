// The graphs of one training step, before any backend sees them.
#pragma once
#include <string>
#include <vector>

#include "rhea/components/train_step/optimizer_groups.h"
#include "rhea/config/sections/activation_checkpoint.h"
#include "rhea/config/sections/loss.h"
#include "rhea/nn/decoder.h"
#include "rhea/passes/remat.h"

namespace rhea::train_step {

struct StepOptions {
  nn::TraceOptions trace;
  Slot<LossConfig> loss = ChunkedLossConfig{};
  bool accumulates = false;  // several microbatches per optimizer step
  bool validates = false;
  ActivationCheckpointConfig activation_checkpoint;
  Slot<OptimizerConfig> optimizer;
  std::vector<std::string> disable_passes;
  std::string dump_graphs;
};

// prepare     after parameters were written from outside: their casts and packed copies
// microbatch  forward and backward of the first microbatch: loss, grad.<fqn>, load.<bias>, and
//             squares.<fqn> of gradients whose producer sums them up (pass norm_in_products)
// accumulate  of the further ones: adds its finished gradients and loads to these in place
// norm        "norm": global 2-norm of the gradients, f32, from squares.<fqn> where there are such
// update      clip, balance of experts, optimizer; in place on <fqn>, <bias> and <state>.<fqn>,
//             then what prepare does; inputs clip f32, step i64, lr.<group> f32
// evaluate    loss only
struct StepGraphs {
  ir::Graph prepare, microbatch, accumulate, norm, update, evaluate;
  bool update_prepares = false;  // off: prepare runs after each update (pass prepare_in_update)
  std::vector<nn::Parameter> parameters;  // trained
  std::vector<nn::Parameter> frozen;      // stored and computed with like these, never changed
  std::vector<nn::Parameter> constants;   // no gradient, f32 (nn::Trace::constant)
  // Constants that follow the load of experts (nn::Trace::balance).
  struct Balance {
    std::string bias;
    double coeff = 0;  // 0: the bias is frozen
    int64_t num_experts = 0;
  };
  std::vector<Balance> balances;
  std::vector<nn::RopeSpec> rope_specs;
  GroupAssignment groups;
  DType param_dtype = DType::f32;  // of parameters and frozen
  DType grad_dtype = DType::f32;   // of grad.<fqn>
  DType state_dtype = DType::f32;  // of the optimizer's tensors
  // With activation_checkpoint.visualize_memory_budget_pareto.
  std::vector<passes::BudgetPoint> budget_curve;

  std::vector<nn::Parameter> all_parameters() const;  // trained, then frozen
};

StepGraphs build_step_graphs(const nn::Decoder::Config& model, const StepOptions& options);

inline constexpr std::string_view kLoss = "loss";
std::string grad_name(std::string_view fqn);     // "grad.<fqn>"
std::string squares_name(std::string_view fqn);  // "squares.<fqn>": f64 [], sum over the gradient
// "load.<bias>": i32 [E], tokens of the step that chose each expert.
std::string load_name(std::string_view bias);
std::string state_name(std::string_view state, std::string_view fqn);
std::string lr_name(size_t group);

}  // namespace rhea::train_step
