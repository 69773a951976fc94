// Memory of the step and the calls between its graphs.
#include "rhea/components/train_step/train_step.h"

#include <algorithm>
#include <cstring>

#include "rhea/base/error.h"

namespace rhea::train_step {
namespace {

using exec::cpu::CpuExecutable;

constexpr int64_t kAlignment = 64;

}  // namespace

// Scalar inputs and outputs of the graphs.
struct TrainStep::Scalars {
  struct alignas(kAlignment) Rate {
    float value = 0;
  };
  alignas(kAlignment) float loss = 0;
  alignas(kAlignment) float loss_scale = 0;
  alignas(kAlignment) float norm = 0;
  alignas(kAlignment) float clip = 0;
  alignas(kAlignment) int64_t step = 0;
  AlignedVector<Rate> lr;
};

TrainStep::~TrainStep() = default;

std::vector<StateTensor> TrainStep::allocate(
    const std::vector<std::pair<std::string, ir::Type>>& tensors, int64_t& bytes) {
  int64_t total = 0;
  for (const auto& [name, type] : tensors) total += round_up(ir::byte_size(type), kAlignment);
  bytes += total;
  blocks_.push_back(exec::cpu::allocate_state(std::max(total, kAlignment), pool_));
  char* at = static_cast<char*>(blocks_.back().get());
  std::vector<StateTensor> made;
  for (const auto& [name, type] : tensors) {
    made.push_back({name, type, at});
    at += round_up(ir::byte_size(type), kAlignment);
  }
  return made;
}

TrainStep::TrainStep(StepGraphs graphs, const nn::TraceOptions& trace,
                     const exec::cpu::CompileOptions& compile, ThreadPool& pool)
    : graphs_(std::move(graphs)),
      trace_(trace),
      pool_(pool),
      scalars_(std::make_unique<Scalars>()) {
  std::vector<std::pair<std::string, ir::Type>> parameters, gradients, optimizer, prepared, tables;
  for (size_t i = 0; i < graphs_.parameters.size(); ++i) {
    const auto& parameter = graphs_.parameters[i];
    parameters.emplace_back(parameter.fqn, ir::Type{trace.param_dtype, parameter.shape});
    gradients.emplace_back(grad_name(parameter.fqn), ir::Type{graphs_.grad_dtype, parameter.shape});
    for (const auto& state : graphs_.groups.groups[graphs_.groups.group_of[i]].state_names())
      optimizer.emplace_back(state_name(state, parameter.fqn),
                             ir::Type{graphs_.state_dtype, parameter.shape});
  }
  for (const auto& out : graphs_.prepare.outputs())
    prepared.emplace_back(out.name, graphs_.prepare.type(out.value));
  for (size_t i = 0; i < graphs_.rope_specs.size(); ++i) {
    const ir::Type type{DType::f32, {trace.seq_len, graphs_.rope_specs[i].rotary_dim / 2}};
    for (const char* kind : {"cos", "sin"})
      tables.emplace_back(nn::Trace::rope_input(i, kind), type);
  }
  parameters_ = allocate(parameters, memory_.parameters);
  gradients_ = allocate(gradients, memory_.gradients);
  optimizer_ = allocate(optimizer, memory_.optimizer);
  prepared_ = allocate(prepared, memory_.prepared);
  tables_ = allocate(tables, memory_.scratch);
  table_lengths_.assign(graphs_.rope_specs.size(), -1);
  const auto tokens = static_cast<size_t>(trace.num_tokens);
  tokens_.resize(tokens);
  labels_.resize(tokens);
  positions_.resize(tokens);
  scalars_->lr.resize(graphs_.groups.groups.size());

  const auto arena = exec::cpu::make_arena();
  const auto build = [&](const ir::Graph& graph,
                         const char* name) -> std::unique_ptr<CpuExecutable> {
    if (graph.outputs().empty()) return nullptr;
    exec::cpu::CompileOptions options = compile;
    options.name = name;
    auto executable = exec::cpu::compile(graph, pool_, arena, options);
    bind(*executable, graph);
    const auto memory = executable->memory();
    memory_.activations = std::max(memory_.activations, memory.arena);
    memory_.scratch += memory.constants;
    return executable;
  };
  prepare_ = build(graphs_.prepare, "prepare");
  microbatch_ = build(graphs_.microbatch, "microbatch");
  accumulate_ = build(graphs_.accumulate, "accumulate");
  norm_ = build(graphs_.norm, "norm");
  update_ = build(graphs_.update, "update");
  evaluate_ = build(graphs_.evaluate, "evaluate");
}

void TrainStep::bind(CpuExecutable& executable, const ir::Graph& graph) {
  const auto find = [&](const std::string& name) -> void* {
    for (const auto* tensors : {&parameters_, &gradients_, &optimizer_, &prepared_, &tables_}) {
      for (const StateTensor& tensor : *tensors) {
        if (tensor.name == name) return tensor.data;
      }
    }
    if (name.starts_with("acc.")) {
      const std::string grad = grad_name(name.substr(4));
      for (const StateTensor& tensor : gradients_) {
        if (tensor.name == grad) return tensor.data;
      }
    }
    if (name == nn::kTokens) return tokens_.data();
    if (name == nn::kLabels) return labels_.data();
    if (name == nn::kPositions) return positions_.data();
    if (name == nn::kLossScale) return &scalars_->loss_scale;
    if (name == kLoss) return &scalars_->loss;
    if (name == "norm") return &scalars_->norm;
    if (name == "clip") return &scalars_->clip;
    if (name == "step") return &scalars_->step;
    for (size_t i = 0; i < scalars_->lr.size(); ++i) {
      if (name == lr_name(i)) return &scalars_->lr[i].value;
    }
    return nullptr;
  };
  for (const auto& input : graph.inputs()) {
    void* data = find(input.name);
    RHEA_CHECK(data != nullptr, "graph input '{}' has no memory", input.name);
    executable.bind_input(input.name, data);
  }
  for (const auto& output : graph.outputs()) {
    if (!output.donates.empty()) continue;  // written over its input
    void* data = find(output.name);
    RHEA_CHECK(data != nullptr, "graph output '{}' has no memory", output.name);
    executable.bind_output(output.name, data);
  }
}

void TrainStep::initialise(uint64_t seed) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto& parameter = graphs_.parameters[i];
    const int64_t rows = parameter.shape.empty() ? 1 : parameter.shape[0];
    const int64_t row = rows == 0 ? 0 : ir::num_elements(parameter.shape) / rows;
    for (const auto& part : parameter.parts) {
      char* data = static_cast<char*>(parameters_[i].data) +
                   part.row_begin * row * dtype_size(trace_.param_dtype);
      nn::initialise(data, trace_.param_dtype, (part.row_end - part.row_begin) * row, part.init,
                     seed, part.fqn, pool_);
    }
  }
  for (const StateTensor& tensor : optimizer_)
    std::memset(tensor.data, 0, static_cast<size_t>(ir::byte_size(tensor.type)));
  parameters_changed();
}

void TrainStep::parameters_changed() { prepared_is_current_ = false; }

void TrainStep::set_batch(const Batch& batch) {
  std::copy_n(batch.tokens, tokens_.size(), tokens_.data());
  std::copy_n(batch.labels, labels_.size(), labels_.data());
  std::copy_n(batch.positions, positions_.size(), positions_.data());
  int64_t length = 0;
  for (size_t i = 0; i < graphs_.rope_specs.size(); ++i) {
    const auto& spec = graphs_.rope_specs[i];
    if (spec.depends_on_length() && length == 0)
      length = positions_.empty() ? 1 : *std::max_element(positions_.begin(), positions_.end()) + 1;
    const int64_t wanted = spec.depends_on_length() ? length : 0;
    if (table_lengths_[i] == wanted) continue;
    nn::fill_tables(spec, trace_.seq_len, wanted, static_cast<float*>(tables_[2 * i].data),
                    static_cast<float*>(tables_[2 * i + 1].data));
    table_lengths_[i] = wanted;
  }
  if (!prepared_is_current_ && prepare_) prepare_->run();
  prepared_is_current_ = true;
}

double TrainStep::forward_backward(const Batch& batch, double loss_scale) {
  set_batch(batch);
  scalars_->loss_scale = static_cast<float>(loss_scale);
  RHEA_CHECK(!has_gradients_ || accumulate_,
             "built without accumulation, but a second microbatch arrived");
  (has_gradients_ ? *accumulate_ : *microbatch_).run();
  has_gradients_ = true;
  return static_cast<double>(scalars_->loss);
}

double TrainStep::gradient_norm() {
  norm_->run();
  return static_cast<double>(scalars_->norm);
}

void TrainStep::update(int64_t step, std::span<const double> lr, double clip) {
  RHEA_CHECK(lr.size() == scalars_->lr.size(), "{} rates for {} groups", lr.size(),
             scalars_->lr.size());
  for (size_t i = 0; i < lr.size(); ++i) scalars_->lr[i].value = static_cast<float>(lr[i]);
  scalars_->clip = static_cast<float>(clip);
  scalars_->step = step;
  update_->run();
  discard_gradients();
  if (!graphs_.update_prepares) parameters_changed();
}

void TrainStep::discard_gradients() { has_gradients_ = false; }

double TrainStep::evaluate(const Batch& batch, double loss_scale) {
  RHEA_CHECK(evaluate_ != nullptr, "built without validation");
  set_batch(batch);
  scalars_->loss_scale = static_cast<float>(loss_scale);
  evaluate_->run();
  return static_cast<double>(scalars_->loss);
}

std::vector<std::pair<std::string, CpuExecutable*>> TrainStep::executables() {
  std::vector<std::pair<std::string, CpuExecutable*>> made;
  for (const auto& [name, executable] : {std::pair{"prepare", &prepare_},
                                         {"microbatch", &microbatch_},
                                         {"accumulate", &accumulate_},
                                         {"norm", &norm_},
                                         {"update", &update_},
                                         {"evaluate", &evaluate_}}) {
    if (*executable) made.emplace_back(name, executable->get());
  }
  return made;
}

StepPlan plan_step(const StepGraphs& graphs, int num_threads,
                   const exec::cpu::CompileOptions& compile) {
  StepPlan plan;
  const auto aligned = [](const ir::Type& type) {
    return round_up(ir::byte_size(type), kAlignment);
  };
  for (const auto& input : graphs.update.inputs()) {
    const int64_t bytes = aligned(graphs.update.type(input.value));
    if (input.name.starts_with("grad."))
      plan.memory.gradients += bytes;
    else if (input.name.starts_with("exp_avg") || input.name.starts_with("momentum_buffer."))
      plan.memory.optimizer += bytes;
    else if (graphs.update.type(input.value).rank() > 0)
      plan.memory.parameters += bytes;
  }
  for (const auto& out : graphs.prepare.outputs())
    plan.memory.prepared += aligned(graphs.prepare.type(out.value));
  for (const auto& [name, graph] : {std::pair{"prepare", &graphs.prepare},
                                    {"microbatch", &graphs.microbatch},
                                    {"accumulate", &graphs.accumulate},
                                    {"norm", &graphs.norm},
                                    {"update", &graphs.update},
                                    {"evaluate", &graphs.evaluate}}) {
    if (graph->outputs().empty()) continue;
    exec::cpu::CompileOptions options = compile;
    options.name = name;
    plan.graphs.emplace_back(name, exec::cpu::plan(*graph, num_threads, options));
    const auto& memory = plan.graphs.back().second.memory;
    plan.memory.activations = std::max(plan.memory.activations, memory.arena);
    plan.memory.scratch = std::max(plan.memory.scratch, memory.scratch + memory.constants);
  }
  return plan;
}

}  // namespace rhea::train_step
