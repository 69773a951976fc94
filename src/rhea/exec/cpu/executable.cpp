// Runs a program: binds pointers once, then calls kernels over their grids.
#include "rhea/exec/cpu/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/exec/cpu/fence.h"
#include "rhea/exec/cpu/profile.h"
#include "rhea/ir/op_def.h"

namespace rhea::exec::cpu {
namespace {

template <class T>
bool all_finite(const T* row, int64_t n) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>) {
    for (int64_t i = 0; i < n; ++i)
      if (!std::isfinite(static_cast<float>(row[i]))) return false;
  } else if constexpr (std::is_floating_point_v<T>) {
    for (int64_t i = 0; i < n; ++i)
      if (!std::isfinite(row[i])) return false;
  }
  return true;
}

bool is_finite(const ir::Buffer& buffer, const ir::Type& type) {
  if (!is_float(type.dtype)) return true;
  return dispatch_dtype(type.dtype, [&]<class T>() {
    const auto* data = buffer.as<const T>();
    // Packed layouts hold zeros in their padding: all their elements are looked at.
    if (type.layout != ir::Layout::row_major || type.rank() < 2)
      return all_finite(data, ir::byte_size(type) / dtype_size(type.dtype));
    const int64_t rows = type.shape[0];
    const int64_t row = rows == 0 ? 0 : ir::num_elements(type.shape) / rows;
    for (int64_t r = 0; r < rows; ++r)
      if (!all_finite(data + r * buffer.row_stride, row)) return false;
    return true;
  });
}

// From the first byte of the buffer to its last; with gaps between rows they count.
int64_t extent(const ir::Buffer& buffer, const ir::Type& type) {
  const int64_t elements = ir::num_elements(type.shape);
  if (type.layout != ir::Layout::row_major || type.rank() == 0 || elements == 0)
    return ir::byte_size(type);
  const int64_t rows = type.shape[0];
  return ((rows - 1) * buffer.row_stride + elements / rows) * dtype_size(type.dtype);
}

int32_t index_of(const auto& list, std::string_view name) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return static_cast<int32_t>(i);
  }
  return -1;
}

void check_alignment(std::string_view name, const void* data) {
  RHEA_CHECK(reinterpret_cast<uintptr_t>(data) % 64 == 0,
             "'{}' is bound to memory that is not 64-byte aligned", name);
}

// A page apart, so that threads do not share cache lines or sets.
int64_t scratch_stride(int64_t bytes) { return bytes == 0 ? 0 : round_up(bytes, 4096) + 64; }

}  // namespace

MemoryPlan with_scratch(MemoryPlan memory, int num_threads) {
  memory.scratch = scratch_stride(memory.scratch) * num_threads;
  return memory;
}

std::vector<NodeReport> make_reports(const Program& program) {
  std::vector<NodeReport> reports;
  reports.reserve(program.steps.size());
  std::set<std::pair<int32_t, int32_t>> results;
  for (const auto& out : program.graph.outputs()) results.emplace(out.value.node, out.value.output);
  const auto directions = passes::directions(program.graph);
  for (const Step& step : program.steps) {
    const ir::Node& node = program.graph.nodes()[static_cast<size_t>(step.node)];
    int64_t bytes = 0;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!results.contains({step.node, static_cast<int32_t>(i)}))
        bytes += ir::byte_size(node.outputs[i]);
    }
    const ir::Type& type =
        node.inputs.empty() ? node.outputs[0] : program.graph.type(node.inputs[0]);
    reports.push_back({step.copy ? "copy" : std::string(node.op->name),
                       program.graph.scope_name(node), step.choice->types, step.choice->kernel,
                       step.choice->note, step.choice->cost, bytes, type,
                       directions[static_cast<size_t>(step.node)]});
  }
  return reports;
}

ProgramExecutable::ProgramExecutable(Program program, ThreadPool& pool,
                                     std::shared_ptr<Arena> arena, const CompileOptions& options)
    : program_(std::move(program)),
      pool_(pool),
      arena_(std::move(arena)),
      name_(options.name),
      detect_anomaly_(options.detect_anomaly),
      log_profile_(log_topic("profile")),
      profiling_(log_profile_),
      inputs_(program_.graph.inputs().size(), nullptr),
      outputs_(program_.graph.outputs().size(), nullptr),
      reports_(make_reports(program_)),
      times_(program_.steps.size(), 0.0) {
  const int threads = pool_.num_threads();
  const auto& nodes = pool_.nodes();
  const int64_t stride = scratch_stride(program_.memory.scratch);
  if (nodes.empty()) {
    scratch_places_ = place_scratch(stride, threads, nodes);
    scratch_offset_ = round_up(program_.memory.arena, 4096);
    arena_->reserve(scratch_offset_ + scratch_places_.bytes);
  } else {
    scratch_offset_ = -1;
    arena_->reserve(program_.memory.arena);
    arena_->reserve_scratch(stride, threads, nodes);
  }
  program_.kernels->make_states();
  fill_constants();
  first_buffer_.reserve(program_.steps.size());
  size_t count = 0;
  for (const Step& step : program_.steps) {
    first_buffer_.push_back(count);
    count += step.in.size() + step.out.size();
  }
  buffers_.resize(count);
  body_ = [this](int64_t begin, int64_t end, int worker) {
    ir::KernelArgs args = args_;
    args.begin = begin;
    args.end = end;
    args.scratch = scratch_of(worker);
    kernel_(args);
  };
  recorded_body_ = [this](int64_t begin, int64_t end, int worker) {
    const Time start = std::chrono::steady_clock::now();
    body_(begin, end, worker);
    note(begin, end, worker, start);
  };
}

ProgramExecutable::~ProgramExecutable() {
  if (log_profile_ && num_runs_ > 0)
    log::info("profile", "{}: {}", name_,
              to_table(sum_times(node_times(reports_, times_, num_runs_), op_and_kernel)));
}

void ProgramExecutable::fill_constants() {
  constants_ = Mapping(program_.memory.constants, "constants");
  for (const Constant& constant : program_.constants) {
    const int64_t n = ir::num_elements(constant.type.shape);
    if (constant.value == 0 && !std::signbit(constant.value)) continue;  // the mapping is zeroed
    for (int64_t i = 0; i < n; ++i)
      store_from_f64(constants_.data() + constant.offset, constant.type.dtype, i, constant.value);
  }
}

void ProgramExecutable::bind_input(std::string_view name, const void* data) {
  const int32_t i = index_of(program_.graph.inputs(), name);
  if (i < 0) throw Error("{}: bind_input: there is no input '{}'", name_, name);
  RHEA_CHECK(program_.inputs[static_cast<size_t>(i)].arena_offset < 0,
             "{}: input '{}' lies in the arena and cannot be bound", name_, name);
  check_alignment(name, data);
  // Donated inputs are written; all others only read.
  inputs_[static_cast<size_t>(i)] = const_cast<void*>(data);
  resolved_ = false;
}

void ProgramExecutable::bind_output(std::string_view name, void* data) {
  const int32_t o = index_of(program_.graph.outputs(), name);
  if (o < 0) throw Error("{}: bind_output: there is no output '{}'", name_, name);
  RHEA_CHECK(program_.outputs[static_cast<size_t>(o)].arena_offset < 0,
             "{}: output '{}' lies in the arena and cannot be bound", name_, name);
  check_alignment(name, data);
  outputs_[static_cast<size_t>(o)] = data;
  resolved_ = false;
}

void ProgramExecutable::check_bindings() const {
  const auto& graph = program_.graph;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == nullptr && ir::byte_size(graph.type(graph.inputs()[i].value)) > 0)
      throw Error("{}: input '{}' is not bound", name_, graph.inputs()[i].name);
  }
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const auto& out = graph.outputs()[o];
    if (out.donates.empty()) {
      if (outputs_[o] == nullptr && ir::byte_size(graph.type(out.value)) > 0)
        throw Error("{}: output '{}' is not bound", name_, out.name);
      continue;
    }
    const auto i = static_cast<size_t>(index_of(graph.inputs(), out.donates));
    if (outputs_[o] != nullptr && outputs_[o] != inputs_[i])
      throw Error(
          "{}: output '{}' takes the buffer of input '{}', but they are bound to different "
          "addresses: bind both to one, or leave the output unbound",
          name_, out.name, out.donates);
  }
}

void ProgramExecutable::resolve() {
  const auto bind_planned = [&](const std::vector<Binding>& bindings, std::vector<void*>& to) {
    for (size_t i = 0; i < to.size(); ++i) {
      if (bindings[i].arena_offset >= 0) to[i] = arena_->data() + bindings[i].arena_offset;
    }
  };
  bind_planned(program_.inputs, inputs_);
  bind_planned(program_.outputs, outputs_);
  check_bindings();
  generation_ = arena_->generation();
  scratch_ = scratch_offset_ < 0 ? arena_->scratch() : arena_->data() + scratch_offset_;
  if (scratch_offset_ < 0) scratch_places_ = arena_->scratch_places();
  const auto pointer = [&](const Place& place) -> void* {
    switch (place.base) {
      case Place::Base::arena:
        return arena_->data() + place.offset;
      case Place::Base::input:
        return static_cast<std::byte*>(inputs_[static_cast<size_t>(place.index)]) + place.offset;
      case Place::Base::output:
        return static_cast<std::byte*>(outputs_[static_cast<size_t>(place.index)]) + place.offset;
      default:
        return constants_.data() + place.offset;
    }
  };
  size_t at = 0;
  for (const Step& step : program_.steps) {
    for (const Place& place : step.in) buffers_[at++] = {pointer(place), place.row_stride};
    for (const Place& place : step.out) buffers_[at++] = {pointer(place), place.row_stride};
  }
  resolved_ = true;
}

void ProgramExecutable::run() {
  if (!resolved_ || generation_ != arena_->generation()) resolve();
  if (detect_anomaly_) check_inputs();
  ++num_runs_;
  for (size_t s = 0; s < program_.steps.size(); ++s) {
    if (profiling_ || log_ != nullptr) {
      const Time begin = std::chrono::steady_clock::now();
      run_step(s);
      const Time end = std::chrono::steady_clock::now();
      times_[s] += std::chrono::duration<double>(end - begin).count();
      if (log_ != nullptr) log_->calls.push_back({static_cast<int32_t>(s), begin, end});
    } else {
      run_step(s);
    }
    if (detect_anomaly_) check_results(s);
  }
}

void ProgramExecutable::run_step(size_t s) {
  const Step& step = program_.steps[s];
  const ir::KernelPlan& plan = step.choice->plan;
  args_.in = buffers_.data() + first_buffer_[s];
  args_.out = args_.in + step.in.size();
  args_.workspace =
      step.workspace < 0
          ? nullptr
          : arena_->data() + program_.buffers[static_cast<size_t>(step.workspace)].offset;
  args_.state = plan.state.get();
  kernel_ = plan.run;
  if (kFences && step.choice->is_outside)
    run_fenced(s);
  else
    run_phases(step);
}

// The step of a kernel from outside, with the arena closed to it but for what it was given.
void ProgramExecutable::run_fenced(size_t s) {
  const Step& step = program_.steps[s];
  const ir::Node& node = program_.graph.nodes()[static_cast<size_t>(step.node)];
  const Fence fence(arena_->data(), arena_->bytes());
  const Fence scratch_fence(arena_->scratch(), arena_->scratch_bytes());
  for (size_t i = 0; i < step.in.size(); ++i)
    fence.open(args_.in[i].data, extent(args_.in[i], program_.graph.type(node.inputs[i])));
  for (size_t j = 0; j < step.out.size(); ++j)
    fence.open(args_.out[j].data, extent(args_.out[j], node.outputs[j]));
  const ir::KernelPlan& plan = step.choice->plan;
  if (args_.workspace != nullptr) fence.open(args_.workspace, plan.workspace_bytes);
  for (int worker = 0; worker < pool_.num_threads(); ++worker)
    scratch_fence.open(scratch_of(worker), plan.scratch_bytes);
  run_phases(step);
}

void ProgramExecutable::run_phases(const Step& step) {
  const ir::KernelPlan& plan = step.choice->plan;
  const ThreadPool::Body& body = log_ == nullptr ? body_ : recorded_body_;
  const int threads = pool_.num_threads();
  for (size_t phase = 0; phase < plan.grid.size(); ++phase) {
    const int64_t count = plan.grid[phase];
    args_.phase = static_cast<int>(phase);
    if (count <= 0) continue;
    count_ = count;
    if (step.serial || threads == 1 || count == 1) {
      grain_ = count;
      body(0, count, 0);
    } else {
      // Small items are taken several at a time; the results do not depend on it.
      grain_ = std::max<int64_t>(1, count / (int64_t{32} * threads));
      pool_.parallel_for(count, body, grain_);
    }
  }
}

void ProgramExecutable::record_calls(CallLog* log) {
  log_ = log;
  if (log_ != nullptr) log_->workers.resize(static_cast<size_t>(pool_.num_threads()));
}

// Called by the workers, each for its own list.
void ProgramExecutable::note(int64_t begin, int64_t end, int worker, Time start) {
  const Time now = std::chrono::steady_clock::now();
  const auto call = static_cast<int32_t>(log_->calls.size());  // it is listed when it is done
  const auto share = pool_.share_of(worker, count_, grain_);
  const bool stolen = begin < share.begin || begin >= share.end;
  auto& times = log_->workers[static_cast<size_t>(worker)];
  if (!times.empty() && times.back().call == call && times.back().phase == args_.phase &&
      times.back().end_item == begin && times.back().stolen == stolen) {
    times.back().end_item = end;
    times.back().end = now;
  } else {
    times.push_back({call, args_.phase, begin, end, stolen, start, now});
  }
}

void ProgramExecutable::check_inputs() const {
  const auto& inputs = program_.graph.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Type& type = program_.graph.type(inputs[i].value);
    const int64_t row =
        type.rank() < 2 || type.shape[0] == 0 ? 0 : ir::num_elements(type.shape) / type.shape[0];
    if (!is_finite({inputs_[i], row}, type))
      throw ExitError(ExitCode::non_finite, fmt::format("{}: NaN or Inf in input '{}' ({})", name_,
                                                        inputs[i].name, ir::to_string(type)));
  }
}

void ProgramExecutable::check_results(size_t s) const {
  const Step& step = program_.steps[s];
  const ir::Node& node = program_.graph.nodes()[static_cast<size_t>(step.node)];
  const ir::Buffer* out = buffers_.data() + first_buffer_[s] + step.in.size();
  for (size_t j = 0; j < step.out.size(); ++j) {
    if (is_finite(out[j], node.outputs[j])) continue;
    const std::string& scope = program_.graph.scope_name(node);
    throw ExitError(
        ExitCode::non_finite,
        fmt::format("{}: NaN or Inf in result {} of {} ({}, kernel {})\n  in {}\n  at {}", name_, j,
                    node.op->name, ir::to_string(node.outputs[j]), step.choice->kernel,
                    scope.empty() ? "(no module)" : scope, program_.graph.location_name(node)));
  }
}

MemoryPlan ProgramExecutable::memory() const {
  return with_scratch(program_.memory, pool_.num_threads());
}

void* ProgramExecutable::planned_input(std::string_view name) const {
  const int32_t i = index_of(program_.graph.inputs(), name);
  if (i < 0) return nullptr;
  const int64_t offset = program_.inputs[static_cast<size_t>(i)].arena_offset;
  return offset < 0 ? nullptr : arena_->data() + offset;
}

bool ProgramExecutable::plans_output(std::string_view name) const {
  const int32_t o = index_of(program_.graph.outputs(), name);
  return o >= 0 && program_.outputs[static_cast<size_t>(o)].arena_offset >= 0;
}

std::vector<double> ProgramExecutable::take_times() {
  num_runs_ = 0;
  return std::exchange(times_, std::vector<double>(program_.steps.size(), 0.0));
}

}  // namespace rhea::exec::cpu
