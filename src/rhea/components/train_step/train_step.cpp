// Memory of the step and the calls between its graphs.
#include "rhea/components/train_step/train_step.h"

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/nn/initialise.h"

namespace rhea::train_step {
namespace {

using exec::cpu::CpuExecutable;

constexpr int64_t kAlignment = 64;

int64_t aligned_bytes(const ir::Type& type) { return round_up(ir::byte_size(type), kAlignment); }

// A round of the arena is an optimizer step.
std::vector<exec::cpu::TurnGraph> turns_of(const StepGraphs& graphs,
                                           const exec::cpu::CompileOptions& compile) {
  std::vector<exec::cpu::TurnGraph> turns;
  const auto add = [&](const ir::Graph& graph, const char* name, bool optional, bool repeats) {
    if (graph.outputs().empty()) return;
    turns.push_back({&graph, compile, optional, repeats});
    turns.back().options.name = name;
  };
  // Where the update prepares the weights, the graph of its own runs in the first round only.
  add(graphs.prepare, "prepare", graphs.update_prepares, false);
  add(graphs.evaluate, "evaluate", true, true);
  add(graphs.microbatch, "microbatch", false, false);
  add(graphs.accumulate, "accumulate", true, true);
  add(graphs.norm, "norm", false, false);
  add(graphs.update, "update", false, false);
  return turns;
}

StepMemory memory_of(const StepGraphs& graphs, std::span<const exec::MemoryPlan> plans) {
  StepMemory memory;
  for (size_t i = 0; i < graphs.parameters.size(); ++i) {
    const ir::Shape& shape = graphs.parameters[i].shape;
    memory.parameters += aligned_bytes({graphs.param_dtype, shape});
    memory.gradients += aligned_bytes({graphs.grad_dtype, shape});
    const auto& group = graphs.groups.groups[graphs.groups.group_of[i]];
    memory.optimizer += aligned_bytes({graphs.state_dtype, shape}) *
                        static_cast<int64_t>(group.state_names().size());
  }
  for (const auto& parameter : graphs.frozen)
    memory.parameters += aligned_bytes({graphs.param_dtype, parameter.shape});
  for (const auto& constant : graphs.constants)
    memory.parameters += aligned_bytes({DType::f32, constant.shape});
  for (const auto& balance : graphs.balances)
    memory.gradients += aligned_bytes({DType::i32, {balance.num_experts}});
  for (const auto& out : graphs.prepare.outputs())
    memory.prepared += aligned_bytes(graphs.prepare.type(out.value));
  int64_t scratch = 0;
  for (const auto& plan : plans) {
    memory.activations = std::max(memory.activations, plan.live);
    memory.arena = std::max(memory.arena, plan.arena);
    memory.scratch += plan.constants;
    scratch = std::max(scratch, plan.scratch);
  }
  memory.scratch += scratch;
  for (size_t i = 0; i < graphs.rope_specs.size(); ++i) {
    for (const char* kind : {"cos", "sin"}) {
      const auto* table = graphs.microbatch.find_input(nn::Trace::rope_input(i, kind));
      if (table != nullptr) memory.scratch += aligned_bytes(graphs.microbatch.type(table->value));
    }
  }
  return memory;
}

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
    const std::vector<std::pair<std::string, ir::Type>>& tensors) {
  int64_t total = 0;
  for (const auto& [name, type] : tensors) total += aligned_bytes(type);
  blocks_.push_back(exec::cpu::allocate_state(std::max(total, kAlignment)));
  char* at = static_cast<char*>(blocks_.back().get());
  std::vector<StateTensor> made;
  for (const auto& [name, type] : tensors) {
    made.push_back({name, type, at});
    at += aligned_bytes(type);
  }
  return made;
}

TrainStep::TrainStep(StepGraphs graphs, const nn::TraceOptions& trace,
                     const exec::cpu::CompileOptions& compile, ThreadPool& pool)
    : graphs_(std::move(graphs)),
      trace_(trace),
      pool_(pool),
      ropes_(graphs_.rope_specs, trace.seq_len),
      scalars_(std::make_unique<Scalars>()) {
  std::vector<std::pair<std::string, ir::Type>> parameters, frozen, constants, optimizer;
  for (const auto& parameter : graphs_.frozen)
    frozen.emplace_back(parameter.fqn, ir::Type{trace.param_dtype, parameter.shape});
  for (const auto& constant : graphs_.constants)
    constants.emplace_back(constant.fqn, ir::Type{DType::f32, constant.shape});
  for (size_t i = 0; i < graphs_.parameters.size(); ++i) {
    const auto& parameter = graphs_.parameters[i];
    parameters.emplace_back(parameter.fqn, ir::Type{trace.param_dtype, parameter.shape});
    for (const auto& state : graphs_.groups.groups[graphs_.groups.group_of[i]].state_names())
      optimizer.emplace_back(state_name(state, parameter.fqn),
                             ir::Type{graphs_.state_dtype, parameter.shape});
  }
  parameters_ = allocate(parameters);
  if (!frozen.empty()) frozen_ = allocate(frozen);
  if (!constants.empty()) constants_ = allocate(constants);
  optimizer_ = allocate(optimizer);
  const auto tokens = static_cast<size_t>(trace.num_tokens);
  tokens_.resize(tokens);
  labels_.resize(tokens);
  positions_.resize(tokens);
  is_token_.resize(tokens);
  scalars_->lr.resize(graphs_.groups.groups.size());

  const auto turns = turns_of(graphs_, compile);
  auto executables = exec::cpu::compile_turns(turns, pool_, exec::cpu::make_arena());
  std::vector<exec::MemoryPlan> plans;
  for (size_t i = 0; i < turns.size(); ++i) {
    plans.push_back(executables[i]->memory());
    bind(*executables[i], *turns[i].graph);
    for (const auto& [graph, owner] : {std::pair{&graphs_.prepare, &prepare_},
                                       {&graphs_.evaluate, &evaluate_},
                                       {&graphs_.microbatch, &microbatch_},
                                       {&graphs_.accumulate, &accumulate_},
                                       {&graphs_.norm, &norm_},
                                       {&graphs_.update, &update_}}) {
      if (turns[i].graph == graph) *owner = std::move(executables[i]);
    }
  }
  memory_ = memory_of(graphs_, plans);
  for (const auto& parameter : graphs_.parameters) {
    const std::string name = grad_name(parameter.fqn);
    gradients_.push_back(
        {name, {graphs_.grad_dtype, parameter.shape}, update_->planned_input(name)});
    RHEA_CHECK(gradients_.back().data != nullptr, "'{}' is not in the arena", name);
  }
  for (const auto& balance : graphs_.balances) {
    const std::string name = load_name(balance.bias);
    loads_.push_back({name, {DType::i32, {balance.num_experts}}, update_->planned_input(name)});
    RHEA_CHECK(loads_.back().data != nullptr, "'{}' is not in the arena", name);
  }
}

void TrainStep::bind(CpuExecutable& executable, const ir::Graph& graph) {
  const auto find = [&](const std::string& name) -> void* {
    for (const auto* tensors : {&parameters_, &frozen_, &constants_, &optimizer_}) {
      for (const StateTensor& tensor : *tensors) {
        if (tensor.name == name) return tensor.data;
      }
    }
    if (name == nn::kTokens) return tokens_.data();
    if (name == nn::kLabels) return labels_.data();
    if (name == nn::kPositions) return positions_.data();
    if (name == nn::kIsToken) return is_token_.data();
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
    if (executable.planned_input(input.name) != nullptr) continue;
    const void* data = ropes_.find(input.name);
    if (data == nullptr) data = find(input.name);
    RHEA_CHECK(data != nullptr, "graph input '{}' has no memory", input.name);
    executable.bind_input(input.name, data);
  }
  for (const auto& output : graph.outputs()) {
    if (!output.donates.empty() || executable.plans_output(output.name)) continue;
    void* data = find(output.name);
    RHEA_CHECK(data != nullptr, "graph output '{}' has no memory", output.name);
    executable.bind_output(output.name, data);
  }
}

void TrainStep::initialise(uint64_t seed) {
  initialise(seed, [](const std::string&) { return true; });
}

void TrainStep::initialise(uint64_t seed,
                           const std::function<bool(const std::string& fqn)>& wanted) {
  const auto draw = [&](const nn::Parameter& parameter, const StateTensor& tensor) {
    const DType dtype = tensor.type.dtype;
    const int64_t rows = parameter.shape.empty() ? 1 : parameter.shape[0];
    const int64_t row = rows == 0 ? 0 : ir::num_elements(parameter.shape) / rows;
    for (const auto& part : parameter.parts) {
      if (!wanted(part.fqn)) continue;
      if (part.block) {
        // The stock tensor's bits, wherever they are stored.
        const int64_t elements = ir::num_elements(part.shape);
        const auto stock =
            std::make_unique<std::byte[]>(static_cast<size_t>(elements * dtype_size(dtype)));
        nn::initialise(stock.get(), dtype, elements, part.init, seed, part.fqn, pool_);
        nn::scatter(*part.block, part.shape, dtype_size(dtype), stock.get(), tensor.data);
        continue;
      }
      nn::initialise(static_cast<char*>(tensor.data) + part.row_begin * row * dtype_size(dtype),
                     dtype, (part.row_end - part.row_begin) * row, part.init, seed, part.fqn,
                     pool_);
    }
  };
  for (size_t i = 0; i < parameters_.size(); ++i) draw(graphs_.parameters[i], parameters_[i]);
  for (size_t i = 0; i < frozen_.size(); ++i) draw(graphs_.frozen[i], frozen_[i]);
  for (size_t i = 0; i < constants_.size(); ++i) draw(graphs_.constants[i], constants_[i]);
  parameters_changed();
}

void TrainStep::parameters_changed() { prepared_is_current_ = false; }

void TrainStep::set_batch(const Batch& batch) {
  std::copy_n(batch.tokens, tokens_.size(), tokens_.data());
  std::copy_n(batch.labels, labels_.size(), labels_.data());
  std::copy_n(batch.positions, positions_.size(), positions_.data());
  if (batch.is_token != nullptr)
    std::copy_n(batch.is_token, is_token_.size(), is_token_.data());
  else
    std::ranges::fill(is_token_, 1);
  int64_t longest = 0;
  if (ropes_.depends_on_length() && !positions_.empty())
    longest = *std::max_element(positions_.begin(), positions_.end());
  ropes_.fill(longest + 1);
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
  has_gradients_ = false;
  prepared_is_current_ = graphs_.update_prepares;
}

void TrainStep::discard_gradients() {
  has_gradients_ = false;
  prepared_is_current_ = false;  // the backward pass may have used the memory
}

double TrainStep::evaluate(const Batch& batch, double loss_scale) {
  RHEA_CHECK(evaluate_ != nullptr, "built without validation");
  RHEA_CHECK(!has_gradients_, "validation would overwrite gradients that wait for the update");
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
  const auto turns = turns_of(graphs, compile);
  auto [reports, peak] = exec::cpu::plan_turns(turns, num_threads);
  std::vector<exec::MemoryPlan> plans;
  for (size_t i = 0; i < turns.size(); ++i) {
    plans.push_back(reports[i].memory);
    plan.graphs.emplace_back(turns[i].options.name, std::move(reports[i]));
  }
  plan.memory = memory_of(graphs, plans);
  plan.peak = std::move(peak);
  return plan;
}

}  // namespace rhea::train_step
