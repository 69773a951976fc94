// NaN and infinities, for every row: a non-finite element of any operand spreads in every kernel
// exactly as far as in the definition, whose functions are PyTorch's.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rhea/base/rng.h"
#include "rhea/ops/contract/checks.h"

namespace rhea::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kMostElements = 30000;  // of a sample: larger ones are of the same code

int64_t num_operand_elements(const ContractCase& c) {
  int64_t count = 0;
  for (const Tensor& x : c.inputs) count += static_cast<int64_t>(x.size());
  return count;
}

// Rows whose products multiply exact zeros with the operand, as PyTorch's do: the weights of masked
// keys, the gradient of rows without a label.
constexpr std::string_view kSpreadsFurther[] = {"attention", "attention_grad", "cross_entropy_grad",
                                                "linear_cross_entropy_grad"};

// What is not finite in the definition is not finite in the results, and nothing else is; finite
// results agree. Inf and NaN may stand for each other: f32 saturates where f64 does not.
void check_spread(const ContractCase& c, Findings& f) {
  const bool further = std::ranges::find(kSpreadsFurther, c.op->name) != std::end(kSpreadsFurther);
  const bool elementwise = c.op->tile[0] != nullptr;
  for (const auto& [name, plan, added] : runnable_kernels(c)) {
    const Findings::Place kernel(f, fmt::format("kernel {}", name));
    const std::vector<Tensor> results = run_kernel(c, plan, {}, f);
    std::vector<Tensor> expected = c.expected;
    for (size_t r = 0; r < expected.size() && !elementwise; ++r) {
      for (size_t i = 0; i < expected[r].size(); ++i) {
        if (std::isfinite(results[r][i])) continue;
        if (!std::isfinite(expected[r][i]) || further) expected[r][i] = results[r][i];
      }
    }
    expect_close(c, results, expected, f);
  }
}

}  // namespace

void check_nonfinite(const OpDef& op, Findings& f) {
  for (const ir::Sample& sample : samples_of(op)) {
    const auto c = make_case(op, sample);
    if (num_operand_elements(*c) > kMostElements) continue;
    for (size_t i = 0; i < c->in.size(); ++i) {
      if (!is_float(c->in[i].dtype) || c->inputs[i].empty()) continue;
      const RngKey key = rng_key(13, fmt::format("{}/{}/{}", op.name, sample.name, i));
      uint64_t draw = 0;
      for (const double value : {kNan, kInf, -kInf}) {
        const size_t at = rng_below(key, draw++, c->inputs[i].size());
        const Findings::Place place(
            f, fmt::format("sample {}, operand {} element {} is {}", sample.name, i, at, value));
        const double before = c->inputs[i][at];
        c->inputs[i][at] = value;
        c->expected = evaluate_op(c->instance(), c->inputs);
        check_spread(*c, f);
        c->inputs[i][at] = before;
      }
    }
  }
}

}  // namespace rhea::ops
