// trace -> autodiff -> simplify -> pack -> hoist -> recompute -> norm, or sums over microbatches
#include "rhea/components/train_step/step_graphs.h"

#include <fmt/core.h>

#include <set>

#include "rhea/base/error.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/nn/losses.h"
#include "rhea/ops/ops.h"
#include "rhea/passes/add_in_products.h"
#include "rhea/passes/autodiff.h"
#include "rhea/passes/graph_copy.h"
#include "rhea/passes/hoist.h"
#include "rhea/passes/norm_in_products.h"
#include "rhea/passes/pack_weights.h"
#include "rhea/passes/pipeline.h"
#include "rhea/passes/prepare_in_update.h"
#include "rhea/passes/remat.h"
#include "rhea/passes/simplify.h"

namespace rhea::train_step {
namespace {

using ir::Graph;
using ir::Shape;
using ir::Value;

// `first` with its gradients and loads added to what the step has of them, in place, each as soon
// as it is made: it needs memory of its own no longer.
Graph accumulate_variant(const Graph& first) {
  Graph result;
  passes::GraphCopy copy(first, result);
  std::vector<Value> sums(first.outputs().size());
  for (size_t i = 0; i < first.nodes().size(); ++i) {
    copy.add(i);
    for (size_t o = 0; o < sums.size(); ++o) {
      const auto& out = first.outputs()[o];
      if (out.value.node != static_cast<int32_t>(i) || out.name == kLoss) continue;
      const Value value = copy[out.value];
      sums[o] = ops::add(result.input(out.name, value.type()), value);
    }
  }
  for (size_t o = 0; o < sums.size(); ++o) {
    const auto& out = first.outputs()[o];
    if (out.name == kLoss)
      result.output(out.name, copy[out.value]);
    else
      result.output(out.name, sums[o], out.name);
  }
  return result;
}

// The bias of a mixture goes down where an expert had more tokens than the mean, up where it had
// fewer, by the same step; then by what keeps the sum of the bias. Tokens are compared with the
// mean as whole numbers, E n[e] with the sum, which f64 holds exactly.
void build_balance(const StepGraphs::Balance& balance, Graph& update) {
  const ir::Scope scope(update, balance.bias);
  const Shape shape = {balance.num_experts};
  const auto spread = [&](Value x) { return ops::broadcast_in_dim(x, shape, {}); };
  const Value bias_E = update.input(balance.bias, {DType::f32, shape});
  const Value counts_E =
      ops::convert(update.input(load_name(balance.bias), {DType::i32, shape}), DType::f64);
  const auto num_experts = static_cast<double>(balance.num_experts);
  const Value below_E =
      spread(ops::reduce_sum(counts_E, {0})) - ops::multiply(counts_E, num_experts);
  const Value delta_E = ops::multiply(ops::convert(ops::sign(below_E), DType::f32), balance.coeff);
  const Value mean = ops::multiply(ops::reduce_sum(delta_E, {0}), 1 / num_experts);
  update.output("new." + balance.bias, bias_E + (delta_E - spread(mean)), balance.bias);
}

void build_optimizer(const StepOptions& options, StepGraphs& graphs) {
  std::vector<std::string> fqns;
  std::vector<int64_t> sizes;
  for (const auto& parameter : graphs.parameters) {
    fqns.push_back(parameter.fqn);
    sizes.push_back(ir::num_elements(parameter.shape));
  }
  graphs.groups = assign_groups(*options.optimizer, fqns, sizes);

  std::set<std::string, std::less<>> made;
  for (const auto& out : graphs.microbatch.outputs()) made.insert(out.name);
  std::vector<Value> grads, squares;
  for (const auto& parameter : graphs.parameters) {
    if (const std::string name = squares_name(parameter.fqn); made.contains(name))
      squares.push_back(graphs.norm.input(name, {DType::f64, {}}));
    else
      grads.push_back(
          graphs.norm.input(grad_name(parameter.fqn), {graphs.grad_dtype, parameter.shape}));
  }
  graphs.norm.output("norm", ops::global_norm(grads, squares));

  Graph& update = graphs.update;
  for (const auto& balance : graphs.balances) build_balance(balance, update);
  const Value clip = update.input("clip", {DType::f32, {}});
  const Value step = update.input("step", {DType::i64, {}});
  std::vector<Value> rates;
  for (size_t i = 0; i < graphs.groups.groups.size(); ++i)
    rates.push_back(update.input(lr_name(i), {DType::f32, {}}));
  for (size_t i = 0; i < graphs.parameters.size(); ++i) {
    const auto& parameter = graphs.parameters[i];
    const ir::Scope scope(update, parameter.fqn);
    const size_t group = graphs.groups.group_of[i];
    const auto names = graphs.groups.groups[group].state_names();
    const Value p = update.input(parameter.fqn, {options.trace.param_dtype, parameter.shape});
    const Value g = update.input(grad_name(parameter.fqn), {graphs.grad_dtype, parameter.shape});
    std::vector<Value> state;
    for (const auto& name : names)
      state.push_back(
          update.input(state_name(name, parameter.fqn), {graphs.state_dtype, parameter.shape}));
    const auto results =
        add_update(graphs.groups.groups[group], {update, p, g, state, clip, rates[group], step});
    update.output("new." + parameter.fqn, results[0], parameter.fqn);
    for (size_t s = 0; s < names.size(); ++s) {
      const std::string name = state_name(names[s], parameter.fqn);
      update.output("new." + name, results[s + 1], name);
    }
  }
}

passes::RematPolicy remat_policy(const StepOptions& options) {
  const ActivationCheckpointConfig& config = options.activation_checkpoint;
  using Mode = passes::RematPolicy::Mode;
  passes::RematPolicy policy;
  policy.mode = config.mode == "none"        ? Mode::none
                : config.mode == "full"      ? Mode::full
                : config.mode == "selective" ? Mode::selective
                                             : Mode::memory_budget;
  policy.force_recompute_products = config.force_recompute_mm_shapes_by_fqns;
  // The default names a module that most models lack.
  policy.texts_must_match = policy.force_recompute_products !=
                            ActivationCheckpointConfig().force_recompute_mm_shapes_by_fqns;
  policy.memory_budget = config.memory_budget;
  policy.planned_bytes = [&options](const Graph& graph) {
    const auto memory =
        exec::cpu::plan(graph, 1, {.disable_passes = options.disable_passes}).memory;
    return passes::GraphBytes{memory.live, memory.arena};
  };
  return policy;
}

}  // namespace

std::string grad_name(std::string_view fqn) { return fmt::format("grad.{}", fqn); }
std::string squares_name(std::string_view fqn) { return fmt::format("squares.{}", fqn); }
std::string load_name(std::string_view bias) { return fmt::format("load.{}", bias); }
std::string state_name(std::string_view state, std::string_view fqn) {
  return fmt::format("{}.{}", state, fqn);
}
std::string lr_name(size_t group) { return fmt::format("lr.{}", group); }

std::vector<nn::Parameter> StepGraphs::all_parameters() const {
  std::vector<nn::Parameter> all = parameters;
  all.insert(all.end(), frozen.begin(), frozen.end());
  return all;
}

StepGraphs build_step_graphs(const nn::Decoder::Config& model, const StepOptions& options) {
  StepGraphs graphs;
  graphs.param_dtype = graphs.grad_dtype = options.trace.param_dtype;
  const bool bf16_states = options.optimizer->implementation == "fused_opt_states_bf16";
  graphs.state_dtype = bf16_states ? DType::bf16 : options.trace.param_dtype;

  const auto pipeline_of = [&](const char* name) {
    return passes::Pipeline({.disable_passes = options.disable_passes,
                             .dump_graphs = options.dump_graphs,
                             .name = name});
  };
  std::set<std::string, std::less<>> names;
  const auto is_parameter = [&](std::string_view name) { return names.contains(name); };
  const auto finish = [&](passes::Pipeline& pipeline, Graph&& traced) {
    Graph graph = std::move(traced);
    pipeline.run("simplify", graph, passes::simplify);
    pipeline.run("pack_weights", graph, [&](const Graph& g) {
      return passes::pack_weights(g, is_parameter, active_isa());
    });
    auto split = passes::hoist(graph, is_parameter);
    pipeline.check("hoist", split.rest);
    return split;
  };

  {
    Graph traced;
    nn::TraceOptions training = options.trace;
    training.counts_load = true;
    nn::Trace trace(traced, training);
    const Value loss = nn::traced_loss(trace, model, *options.loss);
    for (const auto& parameter : trace.parameters()) {
      const bool trained = nn::is_trainable(model.trainable, parameter);
      (trained ? graphs.parameters : graphs.frozen).push_back(parameter);
      names.insert(parameter.fqn);
    }
    if (graphs.parameters.empty())
      throw Error("all {} parameters are frozen, so there is nothing to train",
                  graphs.frozen.size());
    graphs.constants = trace.constants();
    graphs.rope_specs = trace.rope_specs();
    for (const auto& balance : trace.balances()) {
      // A frozen bias moves by 0: the load of its experts is counted all the same.
      const double coeff = nn::is_trainable(model.trainable, balance.bias) ? balance.coeff : 0;
      graphs.balances.push_back({balance.bias, coeff, balance.counts_E.dim(0)});
      traced.output(load_name(balance.bias), balance.counts_E);
    }
    std::vector<Value> inputs;
    for (const auto& parameter : graphs.parameters)
      inputs.push_back(trace.parameter_input(parameter));
    auto pipeline = pipeline_of("microbatch");
    pipeline.check("trace", traced);
    const auto grads = passes::gradients(traced, loss, inputs);
    traced.output(kLoss, loss);
    for (size_t i = 0; i < grads.size(); ++i) {
      const Value grad = grads[i].valid()
                             ? ops::convert(grads[i], graphs.grad_dtype)
                             : traced.constant(0, {graphs.grad_dtype, graphs.parameters[i].shape});
      traced.output(grad_name(graphs.parameters[i].fqn), grad);
    }
    pipeline.check("autodiff", traced);
    auto split = finish(pipeline, std::move(traced));
    graphs.prepare = std::move(split.prepare);
    graphs.microbatch = std::move(split.rest);
    pipeline.run("remat", graphs.microbatch, [&](const Graph& graph) {
      const auto& config = options.activation_checkpoint;
      if (config.mode == "memory_budget" && config.visualize_memory_budget_pareto)
        graphs.budget_curve = passes::budget_curve(graph, kLoss, remat_policy(options));
      return passes::remat(graph, kLoss, remat_policy(options)).graph;
    });
  }
  // With several microbatches no product writes the whole gradient.
  if (options.accumulates) {
    graphs.accumulate = accumulate_variant(graphs.microbatch);
    pipeline_of("accumulate").run("add_in_products", graphs.accumulate, [](const Graph& graph) {
      return passes::add_in_products(graph, active_isa());
    });
  } else {
    pipeline_of("microbatch").run("norm_in_products", graphs.microbatch, [](const Graph& graph) {
      return passes::norm_in_products(graph, active_isa(), [](std::string_view output) {
        const std::string prefix = grad_name("");
        return output.starts_with(prefix) ? squares_name(output.substr(prefix.size())) : "";
      });
    });
  }
  if (options.validates) {
    Graph traced;
    nn::Trace trace(traced, options.trace);
    traced.output(kLoss, nn::traced_loss(trace, model, *options.loss));
    auto pipeline = pipeline_of("evaluate");
    pipeline.check("trace", traced);
    auto split = finish(pipeline, std::move(traced));
    passes::merge_prepare(graphs.prepare, split.prepare);
    graphs.evaluate = std::move(split.rest);
  }
  build_optimizer(options, graphs);
  pipeline_of("update").run("prepare_in_update", graphs.update, [&](const Graph& update) {
    graphs.update_prepares = true;
    return passes::prepare_in_update(update, graphs.prepare);
  });
  return graphs;
}

}  // namespace rhea::train_step
