// The vjp against central differences of the definition.
#include <algorithm>
#include <cmath>
#include <map>

#include "rhea/base/rng.h"
#include "rhea/ir/row_cells.h"
#include "rhea/ops/contract/checks.h"
#include "rhea/ops/table.h"

namespace rhea::ops {
namespace {

using ir::num_elements;

// Float operands that are constants by the definition of the row: the tables of cosines and sines.
constexpr std::pair<std::string_view, size_t> kConstantOperands[] = {{"rope", 1}, {"rope", 2}};
constexpr double kGradientTolerance = 2e-5;  // differences in f64 with a step of 1e-5

// sum over results of cotangent * result, the scalar whose gradient the vjp gives.
double weighted_sum(const std::vector<Tensor>& results, const std::vector<Tensor>& weights) {
  double sum = 0;
  for (size_t r = 0; r < results.size(); ++r) {
    for (size_t i = 0; i < weights[r].size(); ++i) sum += weights[r][i] * results[r][i];
  }
  return sum;
}

bool is_constant(const ContractCase& c, size_t operand) {
  if (c.op->name == "attention" && c.attrs.flag("has_bias") && operand + 1 == c.in.size())
    return true;
  return std::any_of(std::begin(kConstantOperands), std::end(kConstantOperands),
                     [&](const auto& entry) { return entry == std::pair(c.op->name, operand); });
}

// What the vjp gives for one cotangent per float result, and these cotangents.
struct Vjp {
  bool any = false;
  std::vector<Tensor> weights;
  std::map<std::string, Tensor> gradients;  // "dx<operand>", absent where there is none
};

// `first_only`: with the cotangent of result 0 alone.
Vjp run_vjp(const ContractCase& c, Findings& f, bool first_only = false) {
  Vjp made;
  ir::Graph graph;
  std::map<std::string, Tensor> named;
  std::vector<Value> operands, cotangents;
  for (size_t i = 0; i < c.in.size(); ++i) {
    operands.push_back(graph.input(fmt::format("x{}", i), c.in[i]));
    named[fmt::format("x{}", i)] = c.inputs[i];
  }
  const std::vector<Value> results = graph.add(*c.op, operands, c.sample.attrs);
  made.weights.resize(results.size());
  for (size_t r = 0; r < results.size(); ++r) {
    if (!is_float(c.out[r].dtype) || (first_only && r > 0)) {
      cotangents.emplace_back();
      continue;
    }
    made.any = true;
    const std::string name = fmt::format("dy{}", r);
    cotangents.push_back(graph.input(name, c.out[r]));
    const RngKey key = rng_key(9, fmt::format("{}/{}/{}", c.op->name, c.sample.name, r));
    made.weights[r].resize(static_cast<size_t>(num_elements(c.out[r].shape)));
    for (size_t i = 0; i < made.weights[r].size(); ++i)
      made.weights[r][i] = 0.5 + rng_uniform(key, i);
    named[name] = made.weights[r];
  }
  if (!made.any) return made;
  const std::vector<Value> grads =
      ir::call_vjp(*c.op, {graph, c.attrs, operands, results, cotangents});
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].valid()) continue;
    f.expect(is_float(c.in[i].dtype), "gradient for the integer operand {}", i);
    graph.output(fmt::format("dx{}", i), grads[i]);
  }
  if (made.any) made.gradients = evaluate(graph, named);
  return made;
}

// Results behind the first one that were only saved for the backward: nothing of the gradient comes
// from their cotangents.
bool saves_the_rest(const Vjp& all, const Vjp& first) {
  if (!first.any || all.gradients.size() != first.gradients.size()) return false;
  return std::ranges::all_of(all.gradients, [&](const auto& entry) {
    const auto at = first.gradients.find(entry.first);
    return at != first.gradients.end() && same_bits(at->second, entry.second);
  });
}

}  // namespace

void check_gradient(const OpDef& op, Findings& f) {
  if (!op.vjp) return f.skip("has no vjp of its own");
  const bool in_tree = origin_of(op) == kInTree;
  for (const ir::Sample& sample : samples_of(op)) {
    if (!sample.check_vjp) continue;
    const Findings::Place place(f, fmt::format("sample {}", sample.name));
    const auto c = make_case(op, sample);
    Vjp vjp = run_vjp(*c, f);
    if (!vjp.any) continue;
    if (!in_tree && c->out.size() > 1) {
      Vjp first = run_vjp(*c, f, /*first_only=*/true);
      if (saves_the_rest(vjp, first)) {
        f.note(
            "results from 1 on get no gradient: they are taken for tensors saved for the backward");
        vjp = std::move(first);
      }
    }
    for (size_t i = 0; i < c->in.size(); ++i) {
      if (!is_float(c->in[i].dtype) || is_constant(*c, i)) continue;
      const size_t count = c->inputs[i].size();
      const auto found = vjp.gradients.find(fmt::format("dx{}", i));
      if (found == vjp.gradients.end() && !in_tree) {
        f.note("operand {} gets no gradient: it is taken for a constant", i);
        continue;
      }
      const Tensor gradient = found == vjp.gradients.end() ? Tensor(count, 0.0) : found->second;
      if (!f.expect(gradient.size() == count, "the gradient of operand {} has {} elements, not {}",
                    i, gradient.size(), count))
        return;
      const double allowed = kGradientTolerance * largest_of(gradient, 1e-3);
      const size_t step = std::max<size_t>(1, count / 24);
      std::vector<Tensor> moved = c->inputs;
      for (size_t k = 0; k < count; k += step) {
        const double x = c->inputs[i][k];
        const double h = 1e-5 * std::max(1.0, std::abs(x));
        moved[i][k] = x + h;
        const double above = weighted_sum(evaluate_op(c->instance(), moved), vjp.weights);
        moved[i][k] = x - h;
        const double below = weighted_sum(evaluate_op(c->instance(), moved), vjp.weights);
        moved[i][k] = x;
        const double difference = (above - below) / (2 * h);
        if (!f.expect(std::abs(gradient[k] - difference) <= allowed,
                      "gradient of operand {} element {}: vjp gives {}, differences {}", i, k,
                      gradient[k], difference))
          return;
      }
    }
  }
}

}  // namespace rhea::ops
