// Which kernel runs a node: the first that this machine can run and that accepts it, of those that
// were added for the op and then of the row's own.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "rhea/base/cpu_features.h"
#include "rhea/ir/cpu_kernel.h"
#include "rhea/ir/graph.h"

namespace rhea::exec::cpu {

// A kernel with its plan for one op, types and attributes; nodes that agree in these share it.
struct KernelChoice {
  std::string kernel;       // name; "reference" for the slow evaluation in f64
  std::string note;         // the plan's note, and who refused and why
  std::string types;        // "f32[4,8], f32[8,8] -> f32[4,8]"
  bool is_outside = false;  // of a plugin: its own, or that of a row from there
  ir::Cost cost;
  ir::KernelPlan plan;
};

class KernelChooser {
 public:
  // `added_kernels` false: only the kernels of the rows, none that were added (ops/table.h).
  explicit KernelChooser(Isa isa, bool added_kernels = true);

  // Null when the op has no kernel that accepts the node but a decomposition. The pointer lives as
  // long as the chooser and its copies.
  std::shared_ptr<const KernelChoice> choose(const ir::Graph& graph, const ir::Node& node);
  // Makes the states that plans left for later (KernelPlan::make_state).
  void make_states();

 private:
  std::shared_ptr<KernelChoice> choose_new(const ir::Graph& graph, const ir::Node& node);

  Isa isa_;
  bool added_kernels_;
  bool log_;
  std::string key_;  // reused between calls
  std::unordered_map<std::string, std::shared_ptr<KernelChoice>> memo_;
};

// Evaluates OpDef::reference in f64: correct for every row that has one, slow, allocates.
ir::KernelPlan plan_reference(const ir::OpInstance& op);

}  // namespace rhea::exec::cpu
