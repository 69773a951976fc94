// Both sides run, the reference is evaluated, every tensor is judged.
#include "rhea/check/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/machine_memory.h"
#include "rhea/check/values.h"
#include "rhea/ops/contract/case.h"
#include "rhea/ops/evaluate.h"

namespace rhea::check {
namespace {

// Of what is free, for the tensors of the reference. The rest is for what its rows take for
// themselves and for the parts of gradients.
constexpr double kShareOfMemory = 0.5;
constexpr int kRepeats = 3;
// A gradient in which larger terms cancel (of queries with a single key) keeps their rounding: this
// share of the largest gradient of the part is no fault.
constexpr double kCancelled = 4 * 0x1p-23;

// A side, compiled for a number of threads, with memory for its inputs and outputs.
class Run {
 public:
  Run(const Side& side, ThreadPool& pool) : graph_(side.graph) {
    executable_ = exec::cpu::compile(graph_, pool, exec::cpu::make_arena(), side.options);
    for (const auto& input : graph_.inputs()) {
      const auto given = side.inputs.find(input.name);
      RHEA_CHECK(given != side.inputs.end(), "input '{}' has no values", input.name);
      in_.emplace_back(graph_.type(input.value));
      in_.back().fill(given->second);
      executable_->bind_input(input.name, in_.back().buffer().data);
    }
    for (const auto& output : graph_.outputs()) {
      out_.emplace_back(graph_.type(output.value));
      executable_->bind_output(output.name, out_.back().buffer().data);
    }
  }

  Tensors results() {
    executable_->run();
    Tensors made;
    for (size_t i = 0; i < out_.size(); ++i) made[graph_.outputs()[i].name] = out_[i].read();
    return made;
  }

  // The fastest of some runs.
  double seconds() {
    using Clock = std::chrono::steady_clock;
    double best = 1e30, all = 0;
    for (int i = 0; i < 5 || (all < 0.05 && i < 200); ++i) {
      const auto begin = Clock::now();
      executable_->run();
      const double took = std::chrono::duration<double>(Clock::now() - begin).count();
      best = std::min(best, took);
      all += took;
      if (all > 2) break;
    }
    return best;
  }

  std::vector<std::string> kernels() const {
    std::set<std::string> names;
    for (const auto& node : executable_->nodes()) names.insert(node.op + " " + node.kernel);
    return {names.begin(), names.end()};
  }

 private:
  const ir::Graph& graph_;
  std::unique_ptr<exec::cpu::CpuExecutable> executable_;
  std::vector<ops::Memory> in_, out_;
};

// Says in `answer` why the definition of a graph is not evaluated, or that it is.
void decide_on_reference(const ir::Graph& graph, double max_flops, int threads, Answer& answer) {
  constexpr double kGiga = 1e9, kGiB = 1 << 30;
  const ops::EvaluationCost cost = ops::evaluation_cost(graph, threads);
  const MachineMemory memory = machine_memory();
  answer.too_many_flops = cost.flops > max_flops;
  if (answer.too_many_flops)
    answer.no_reference = fmt::format("it takes {:.3g} GFLOP, more than the {:.3g} of {}",
                                      cost.flops / kGiga, max_flops / kGiga, kReferenceOption);
  else if (cost.bytes > kShareOfMemory * static_cast<double>(memory.available))
    answer.no_reference =
        fmt::format("it takes {:.3g} GiB of memory, more than half of what is free ({})",
                    cost.bytes / kGiB, memory.bound);
  answer.has_reference = answer.no_reference.empty();
}

// Every tensor by the name under which the two sides compare: results and gradients of inputs by
// the name of the output, gradients of parameters by that of their parts.
struct Named {
  ir::Type type;
  Tensor values;
};
std::map<std::string, Named> by_name(const Side& side, Tensors results) {
  std::map<std::string, Named> made;
  for (const auto& output : side.graph.outputs())
    made[output.name] = {side.graph.type(output.value), std::move(results.at(output.name))};
  for (const nn::Parameter& parameter : side.parameters) {
    const auto at = made.find("d " + parameter.fqn);
    const bool whole_only = parameter.parts.size() == 1 && !parameter.parts[0].block &&
                            parameter.parts[0].fqn == parameter.fqn;
    if (at == made.end() || whole_only) continue;
    const Named whole = std::move(at->second);
    made.erase(at);
    for (const nn::ParameterPart& part : parameter.parts) {
      // Several parameters may hold rows of one part.
      Named& stock = made["d " + part.fqn];
      stock.type = {whole.type.dtype, nn::checkpoint_shape(parameter, part)};
      stock.values.resize(static_cast<size_t>(ir::num_elements(stock.type.shape)));
      copy_part(parameter, part, whole.values, stock.values);
    }
  }
  return made;
}

bool is_gradient(std::string_view name) { return name.starts_with('d'); }

// `floor`: an absolute difference that is none.
void judge(const Question& question, double floor, TensorAnswer& answer) {
  const double allowed = tolerance(question);
  if (question.exact && question.dtype == DType::f32) {
    if (answer.difference.max_abs > 0)
      answer.fault =
          fmt::format("differs by up to {:.3g}; must be equal", answer.difference.max_abs);
    return;
  }
  const double error = answer.other_error.value_or(answer.difference.max_rel);
  if (error <= std::max(allowed, 1.5 * answer.stock_error.value_or(0))) return;
  if (answer.absolute_error <= floor) return;
  answer.fault = fmt::format("relative error {:.3g}, allowed {:.3g}", error, allowed);
}

// The same results again, and with any number of threads?
void check_bits(const Question& question, ThreadPool& pool, Run& run, const Tensors& first,
                Answer& answer) {
  const auto expect_same = [&](const Tensors& again, const std::string& when) {
    for (const auto& [name, values] : first) {
      if (ops::same_bits(values, again.at(name))) continue;
      answer.faults.push_back(fmt::format("{} has other bits {}", name, when));
    }
  };
  for (int i = 1; i < kRepeats; ++i) expect_same(run.results(), "in another run");
  for (const int threads : {1, 2, 3, 5}) {
    if (threads == pool.num_threads()) continue;
    ThreadPool other_pool(threads);
    expect_same(Run(question.other, other_pool).results(), fmt::format("with {} threads", threads));
  }
}

}  // namespace

bool Answer::good() const {
  return faults.empty() &&
         std::ranges::all_of(tensors, [](const TensorAnswer& t) { return t.fault.empty(); });
}

double tolerance(const Question& question) {
  if (question.dtype == DType::f32) return question.exact ? 0 : 1e-5;
  return 1e-2;
}

Answer compare(const Question& question, ThreadPool& pool) {
  Answer answer;
  Run stock_run(question.stock, pool);
  Run other_run(question.other, pool);
  const Tensors first = other_run.results();
  const auto stock = by_name(question.stock, stock_run.results());
  const auto other = by_name(question.other, first);
  answer.other_kernels = other_run.kernels();
  decide_on_reference(question.stock.graph, question.max_reference_flops, pool.num_threads(),
                      answer);
  std::map<std::string, Named> reference;
  if (answer.has_reference)
    reference =
        by_name(question.stock, ops::evaluate(question.stock.graph, question.stock.inputs, &pool));

  double largest_gradient = 0;
  for (const auto& [name, expected] : stock) {
    const auto found = other.find(name);
    if (found == other.end()) {
      answer.faults.push_back(fmt::format("{} is absent", name));
      continue;
    }
    if (found->second.type.shape != expected.type.shape) {
      answer.faults.push_back(fmt::format("{} is {}, stock {}", name,
                                          ir::to_string(found->second.type),
                                          ir::to_string(expected.type)));
      continue;
    }
    TensorAnswer tensor{.name = name, .type = expected.type};
    tensor.difference = difference(found->second.values, expected.values);
    answer.ulps.add(found->second.values, expected.values, expected.type.dtype);
    if (answer.has_reference) {
      const Tensor& exact = reference.at(name).values;
      tensor.stock_error = difference(expected.values, exact).max_rel;
      const Difference error = difference(found->second.values, exact);
      tensor.other_error = error.max_rel;
      tensor.absolute_error = error.max_abs;
    } else {
      tensor.absolute_error = tensor.difference.max_abs;
    }
    if (is_gradient(name)) largest_gradient = ops::largest_of(expected.values, largest_gradient);
    answer.tensors.push_back(std::move(tensor));
  }
  for (TensorAnswer& tensor : answer.tensors)
    judge(question, is_gradient(tensor.name) ? kCancelled * largest_gradient : 0, tensor);
  for (const auto& [name, named] : other) {
    if (!stock.contains(name)) answer.faults.push_back(fmt::format("{} has no counterpart", name));
  }
  check_bits(question, pool, other_run, first, answer);
  if (question.timed) {
    answer.stock_seconds = stock_run.seconds();
    answer.other_seconds = other_run.seconds();
  }
  return answer;
}

}  // namespace rhea::check
