// The contract of the op table, for every row: complete, inferred types hold, every kernel of every
// instruction set agrees with the f64 definition however its grid is cut, in place and with wide
// rows, and gradients agree with central differences. A new row is covered by being in the table.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "rhea/base/cpu_features.h"
#include "rhea/base/error.h"
#include "rhea/base/rng.h"
#include "rhea/ir/parse.h"
#include "rhea/ir/print.h"
#include "rhea/ir/verify.h"
#include "rhea/ops/contract_case.h"

namespace rhea::ops {
namespace {

using ir::CpuKernel;
using ir::KernelPlan;
using ir::num_elements;
using ir::Sample;
using ir::Type;

// Float operands that are constants by the definition of the row: the tables of cosines and sines.
constexpr std::pair<std::string_view, size_t> kConstantOperands[] = {{"rope", 1}, {"rope", 2}};
constexpr double kGradientTolerance = 2e-5;  // differences in f64 with a step of 1e-5

TEST_P(Contract, RowIsComplete) {
  if (&op() == &ir::kInput) GTEST_SKIP() << "an input is no computation";
  EXPECT_TRUE(op().infer) << op().name << " lacks infer";
  EXPECT_TRUE(op().reference || op().decompose) << op().name << " lacks a definition";
  EXPECT_TRUE(op().shard) << op().name << " lacks shard";
  EXPECT_TRUE(op().cost) << op().name << " lacks cost";
  EXPECT_FALSE(samples().empty()) << op().name << " lacks samples";
  EXPECT_EQ(find_op(op().name), &op());
  if (!op().cpu.empty()) {
    EXPECT_EQ(op().cpu.back().isa, Isa::plain) << op().name << " has no kernel for every CPU";
    EXPECT_FALSE(op().cpu.back().accepts) << op().name << ": the last kernel may not refuse";
  }
}

// "xx,x" for a matrix and a vector.
std::string dims_pattern(std::span<const Type> types) {
  std::string pattern;
  for (size_t i = 0; i < types.size(); ++i) {
    if (i > 0) pattern.push_back(',');
    pattern.append(types[i].shape.size(), 'x');
  }
  return pattern;
}

TEST_P(Contract, SampleTypesShardAndCost) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(fmt::format("sample {}", sample.name));
    const auto c = make_case(op(), sample);
    ASSERT_EQ(c->expected.size(), c->out.size()) << "inferred and real number of results differ";
    for (size_t i = 0; i < c->out.size(); ++i)
      EXPECT_EQ(static_cast<int64_t>(c->expected[i].size()), num_elements(c->out[i].shape));
    // One letter per dim, operands and results separated as documented.
    const std::string shard = op().shard ? op().shard(c->instance()) : "";
    const std::string pattern = dims_pattern(c->in) + "->" + dims_pattern(c->out);
    std::string got;
    for (const char letter : shard) {
      if (letter == '!') continue;
      got += letter == ',' || letter == '-' || letter == '>' ? letter : 'x';
    }
    EXPECT_EQ(got, pattern) << "shard is '" << shard << "'";
    if (op().cost) {
      const ir::Cost cost = op().cost(c->instance());
      EXPECT_TRUE(cost.flops >= 0 && cost.bytes >= 0);
    }
  }
}

TEST_P(Contract, DecompositionEqualsReference) {
  if (!op().reference || !op().decompose) GTEST_SKIP() << "has one definition";
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(fmt::format("sample {}", sample.name));
    const auto c = make_case(op(), sample);
    const std::vector<Tensor> other =
        evaluate_op(c->instance(), c->inputs, Definition::decomposition);
    ASSERT_EQ(other.size(), c->expected.size());
    for (size_t r = 0; r < other.size(); ++r) {
      ASSERT_EQ(other[r].size(), c->expected[r].size());
      double largest = 0;
      for (const double e : c->expected[r]) {
        if (std::isfinite(e)) largest = std::max(largest, std::abs(e));
      }
      for (size_t i = 0; i < other[r].size(); ++i) {
        const double got = other[r][i], want = c->expected[r][i];
        if (got == want || (std::isnan(got) && std::isnan(want))) continue;
        ASSERT_NEAR(got, want, 1e-10 * std::max(largest, 1e-30)) << "result " << r << " at " << i;
      }
    }
  }
}

TEST_P(Contract, EveryKernelAgrees) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(fmt::format("sample {}", sample.name));
    const auto c = make_case(op(), sample);
    std::vector<Tensor> first_tile_results;
    int accepted = 0;
    for (const CpuKernel& kernel : op().cpu) {
      if (kernel.isa > detected_isa()) continue;
      if (kernel.accepts && !kernel.accepts(c->instance()).empty()) continue;
      ++accepted;
      SCOPED_TRACE(fmt::format("kernel {}", kernel.name));
      KernelPlan plan = kernel.plan(c->instance());
      if (plan.make_state) plan.state = plan.make_state();
      const std::vector<Tensor> results = run_kernel(*c, plan, {});
      expect_close(*c, results, c->expected);
      const auto expect_same = [&](const Layouts& layouts, const std::string& how) {
        const std::vector<Tensor> again = run_kernel(*c, plan, layouts);
        for (size_t r = 0; r < results.size(); ++r)
          EXPECT_TRUE(same_bits(again[r], results[r])) << "result " << r << " differs " << how;
      };
      expect_same({.pieces = 3}, "with the grid cut into 3");
      for (const auto& pair : plan.in_place)
        expect_same({.shared = pair}, fmt::format("in place of operand {}", pair.first));
      for (size_t i = 0; i < c->in.size(); ++i) {
        if ((plan.strided_in >> i & 1) != 0 && !c->in[i].shape.empty())
          expect_same({.wide_in = static_cast<int64_t>(i)}, fmt::format("with wide operand {}", i));
      }
      for (size_t i = 0; i < c->out.size(); ++i) {
        if ((plan.strided_out >> i & 1) != 0 && !c->out[i].shape.empty())
          expect_same({.wide_out = static_cast<int64_t>(i)}, fmt::format("with wide result {}", i));
      }
      if (op().tile[0] != nullptr) {
        if (first_tile_results.empty()) first_tile_results = results;
        if (is_float(c->out[0].dtype) && c->out[0].dtype != DType::f64 && accepted <= 3) {
          EXPECT_TRUE(same_bits(results[0], first_tile_results[0]))
              << "instruction sets give different bits";
        }
      }
    }
    EXPECT_TRUE(op().cpu.empty() || accepted > 0) << "no kernel accepts the sample";
  }
}

// The tile functions alone, as clusters call them: any length, and the result over an operand.
TEST_P(Contract, TilesOfEveryInstructionSetAgree) {
  if (op().tile[0] == nullptr) GTEST_SKIP() << "not elementwise";
  for (const Sample& sample : samples()) {
    const auto c = make_case(op(), sample);
    bool f32 = c->out[0].dtype == DType::f32;
    for (const Type& type : c->in) f32 &= type.dtype == DType::f32;
    if (!f32 || c->inputs.empty()) continue;
    SCOPED_TRACE(fmt::format("sample {}", sample.name));
    const auto n = static_cast<int64_t>(c->inputs[0].size());
    std::vector<Tensor> expected;
    for (int isa = 0; isa <= static_cast<int>(detected_isa()); ++isa) {
      const ir::TileFn tile = op().tile[static_cast<size_t>(isa)];
      if (tile == nullptr) continue;
      for (const bool over_operand : {false, true}) {
        const Type tile_type{DType::f32, {round_up(n, 16)}};
        std::vector<Memory> in;
        std::vector<const float*> pointers;
        for (const Tensor& x : c->inputs) {
          in.emplace_back(tile_type);
          in.back().fill(x);
          pointers.push_back(in.back().buffer().as<float>());
        }
        Memory out(tile_type);
        Memory& result = over_operand ? in[0] : out;
        tile(n, pointers.data(), result.buffer().as<float>(), c->attrs);
        EXPECT_TRUE(result.guard_is_whole());
        Tensor values = result.read();
        values.resize(static_cast<size_t>(n));
        if (expected.empty()) {
          expected = {values};
          expect_close(*c, expected, c->expected);
        }
        EXPECT_TRUE(same_bits(values, expected[0]))
            << isa_name(static_cast<Isa>(isa)) << (over_operand ? " over an operand" : "");
      }
    }
  }
}

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

TEST_P(Contract, GradientEqualsDifferences) {
  if (!op().vjp) GTEST_SKIP() << "has no gradient";
  for (const Sample& sample : samples()) {
    if (!sample.check_vjp) continue;
    SCOPED_TRACE(fmt::format("sample {}", sample.name));
    const auto c = make_case(op(), sample);
    ir::Graph graph;
    std::map<std::string, Tensor> named;
    std::vector<Value> operands, cotangents;
    for (size_t i = 0; i < c->in.size(); ++i) {
      operands.push_back(graph.input(fmt::format("x{}", i), c->in[i]));
      named[fmt::format("x{}", i)] = c->inputs[i];
    }
    const std::vector<Value> results = graph.add(op(), operands, sample.attrs);
    std::vector<Tensor> weights(results.size());
    bool any = false;
    for (size_t r = 0; r < results.size(); ++r) {
      if (!is_float(c->out[r].dtype)) {
        cotangents.emplace_back();
        continue;
      }
      any = true;
      const std::string name = fmt::format("dy{}", r);
      cotangents.push_back(graph.input(name, c->out[r]));
      const RngKey key = rng_key(9, fmt::format("{}/{}/{}", op().name, sample.name, r));
      weights[r].resize(static_cast<size_t>(num_elements(c->out[r].shape)));
      for (size_t i = 0; i < weights[r].size(); ++i) weights[r][i] = 0.5 + rng_uniform(key, i);
      named[name] = weights[r];
    }
    if (!any) continue;
    const std::vector<Value> grads = op().vjp({graph, c->attrs, operands, results, cotangents});
    ASSERT_EQ(grads.size(), operands.size()) << "one cotangent per operand";
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].valid()) continue;
      EXPECT_TRUE(is_float(c->in[i].dtype)) << "gradient for the integer operand " << i;
      EXPECT_EQ(grads[i].shape(), c->in[i].shape) << "gradient of operand " << i;
      graph.output(fmt::format("dx{}", i), grads[i]);
    }
    const std::map<std::string, Tensor> gradients = evaluate(graph, named);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!is_float(c->in[i].dtype) || is_constant(*c, i)) continue;
      const size_t count = c->inputs[i].size();
      const auto found = gradients.find(fmt::format("dx{}", i));
      const Tensor gradient = found == gradients.end() ? Tensor(count, 0.0) : found->second;
      ASSERT_EQ(gradient.size(), count);
      double largest = 1e-3;
      for (const double g : gradient) largest = std::max(largest, std::abs(g));
      const size_t step = std::max<size_t>(1, count / 24);
      std::vector<Tensor> moved = c->inputs;
      for (size_t k = 0; k < count; k += step) {
        const double x = c->inputs[i][k];
        const double h = 1e-5 * std::max(1.0, std::abs(x));
        moved[i][k] = x + h;
        const double above = weighted_sum(evaluate_op(c->instance(), moved), weights);
        moved[i][k] = x - h;
        const double below = weighted_sum(evaluate_op(c->instance(), moved), weights);
        moved[i][k] = x;
        ASSERT_NEAR(gradient[k], (above - below) / (2 * h), kGradientTolerance * largest)
            << "operand " << i << " element " << k;
      }
    }
  }
}

TEST_P(Contract, TextReadsBack) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(fmt::format("sample {}", sample.name));
    const auto c = make_case(op(), sample);
    ir::verify(c->graph);
    const std::string text = ir::to_text(c->graph);
    EXPECT_EQ(ir::to_text(ir::parse(text, find_op)), text);
  }
}

// Attributes and shapes that make no sense are errors of the row, never a crash.
TEST_P(Contract, DamagedTextGivesErrorsOnly) {
  const RngKey key = rng_key(11, op().name);
  uint64_t draw = 0;
  const auto below = [&](size_t bound) {
    return static_cast<size_t>(rng_below(key, draw++, static_cast<uint64_t>(bound)));
  };
  constexpr std::string_view digits = "0123456789-,[]";
  for (const Sample& sample : samples()) {
    const std::string text = ir::to_text(make_case(op(), sample)->graph);
    for (int round = 0; round < 150; ++round) {
      std::string damaged = text;
      for (int k = 0; k <= round % 3; ++k)
        damaged[below(damaged.size())] = digits[below(digits.size())];
      SCOPED_TRACE(damaged);
      try {
        ir::verify(ir::parse(damaged, find_op));
      } catch (const Error&) {
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Contract, testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         row_name);

}  // namespace
}  // namespace rhea::ops
