// What training runs between its products: the nodes of its graphs as the executor fuses them,
// clusters above all. Each differing node once, with contiguous operands.
#include <fmt/core.h>

#include <map>
#include <set>

#include "bench/kernels/case.h"
#include "bench/kernels/models.h"
#include "recipes/recipes.h"
#include "rhea/components/train_step/step_graphs.h"
#include "rhea/exec/cpu/kernel_choice.h"
#include "rhea/exec/cpu/profile.h"
#include "rhea/exec/cpu/program.h"
#include "rhea/exec/cpu/views.h"
#include "rhea/models/qwen3/qwen3.h"
#include "rhea/models/registry.h"
#include "rhea/passes/fuse.h"
#include "rhea/trainer_options.h"

namespace rhea::bench {
namespace {

// The other files have these; slices and joins of columns cost nothing in a step (note 011).
bool is_elsewhere(const ir::OpDef* op) {
  static const std::set<const ir::OpDef*> others = {&ir::kInput,
                                                    &ir::kConstant,
                                                    &ops::kSlice,
                                                    &ops::kConcatenate,
                                                    &ops::kDotGeneral,
                                                    &ops::kWeightGradSquares,
                                                    &ops::kPack,
                                                    &ops::kAttention,
                                                    &ops::kAttentionGrad,
                                                    &ops::kLinearCrossEntropy,
                                                    &ops::kLinearCrossEntropyGrad,
                                                    &ops::kEmbedding,
                                                    &ops::kEmbeddingGrad};
  return others.contains(op);
}

TrainerConfig config_of(const config::ConfigRegistry& runs, std::string_view model, DType t) {
  const bool is_run = model != "qwen3_4b";
  TrainerConfig config = runs.find("bench", is_run ? model : "qwen3_0_6b").make();
  if (!is_run) config.model_spec = models::qwen3::model_registry("4B");
  config.training.mixed_precision_param = t == DType::bf16 ? "bfloat16" : "float32";
  config.training.seq_len = 512;
  config.training.local_batch_size = kTokens / config.training.seq_len;
  return config;
}

void add_nodes(const std::string& model, DType t, const ir::Graph& graph) {
  std::set<std::string> seen;
  std::map<std::string, int> with_name;
  for (const ir::Node& node : graph.nodes()) {
    if (is_elsewhere(node.op) || exec::cpu::is_pure_view(graph, node)) continue;
    std::string key(node.op->name);
    std::vector<Operand> operands;
    for (const ir::ValueId id : node.inputs) {
      const ir::Type& type = graph.type(id);
      key += to_string(type);
      operands.push_back({type});
      // Positions, the only integers of these nodes.
      if (type.dtype == DType::i32)
        operands.back().value = [](int64_t i) { return static_cast<double>(i % 512); };
    }
    for (const auto& [attr, value] : node.attrs) key += attr + ir::to_string(value);
    if (!seen.insert(key).second) continue;
    exec::cpu::NodeReport report;
    report.fqn = graph.scope_name(node);
    std::string name = fmt::format("step/{}/{}/{}/{}", node.op->name, dtype_name(t), model,
                                   exec::cpu::module_of(report));
    if (const int earlier = with_name[name]++; earlier > 0) name += fmt::format(".{}", earlier + 1);
    add_case({.name = name, .op = node.op, .operands = std::move(operands), .attrs = node.attrs});
  }
}

}  // namespace

void add_steps() {
  const config::ConfigRegistry runs = recipes::builtin_registry();
  for (const DType t : {DType::bf16, DType::f32})
    for (const Model& m : kModels) {
      const TrainerConfig config = config_of(runs, m.name, t);
      const auto graphs =
          train_step::build_step_graphs(models::decoder(config.model_spec), step_options(config));
      exec::cpu::KernelChooser kernels(active_isa());
      add_nodes(m.name, t, passes::fuse(exec::cpu::legalize(graphs.microbatch, kernels)));
    }
}

}  // namespace rhea::bench
