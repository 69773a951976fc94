// Activations, softmax, logsumexp, top-k and the rounding of conversions.
#include <gtest/gtest.h>

#include <cmath>

#include "golden_case.h"
#include "rhea/ops/ops.h"

namespace rhea::testing {
namespace {

using ir::Value;
using namespace ops;

bool is_case(const GoldenCase& c, std::string_view name) {
  return c.name() == name || c.name() == std::string(name) + "_bf16";
}

Value splat(Value like, double value) { return like.graph->constant(value, like.type()); }

struct Activation {
  const char* name;
  Value (*build)(const GoldenCase& c, Value x, Value up);  // formulas of several ops get f32
};

const Activation kActivations[] = {
    {"silu", [](const GoldenCase&, Value x, Value) { return silu(x); }},
    {"gelu_erf", [](const GoldenCase&, Value x, Value) { return gelu(x, false); }},
    {"gelu_tanh", [](const GoldenCase&, Value x, Value) { return gelu(x, true); }},
    {"sigmoid", [](const GoldenCase&, Value x, Value) { return logistic(x); }},
    {"tanh", [](const GoldenCase&, Value x, Value) { return tanh(x); }},
    {"swiglu", [](const GoldenCase&, Value x, Value up) { return swiglu(x, up); }},
    {"geglu_tanh", [](const GoldenCase&, Value x, Value up) { return gelu(x, true) * up; }},
    {"relu", [](const GoldenCase&, Value x,
                Value) { return select(compare(x, splat(x, 0), "LE"), splat(x, 0), x); }},
    {"relu_squared",
     [](const GoldenCase&, Value x, Value) {
       const Value r = select(compare(x, splat(x, 0), "LE"), splat(x, 0), x);
       return r * r;
     }},
    {"softplus",
     [](const GoldenCase&, Value x, Value) {
       const Value wide = convert(x, DType::f32);
       const Value tail = log(add(exponential(negate(abs(wide))), 1));
       return convert(maximum(wide, splat(wide, 0)) + tail, x.dtype());
     }},
    {"quick_gelu",
     [](const GoldenCase&, Value x, Value) {
       const Value wide = convert(x, DType::f32);
       return convert(wide * logistic(multiply(wide, 1.702)), x.dtype());
     }},
    {"softcap",
     [](const GoldenCase& c, Value x, Value) {
       const double cap = c.attribute("cap", 0);
       const Value wide = convert(x, DType::f32);
       return convert(multiply(tanh(multiply(wide, 1 / cap)), cap), x.dtype());
     }},
    {"swiglu_gpt_oss",
     [](const GoldenCase& c, Value x, Value) {
       const double limit = c.attribute("limit", 0), alpha = c.attribute("alpha", 0);
       const int64_t rows = x.dim(0), columns = x.dim(1) / 2;
       const Value pairs = reshape(convert(x, DType::f32), {rows, columns, 2});
       const Value gate = reshape(slice_dim(pairs, 2, 0, 1), {rows, columns});
       const Value up = reshape(slice_dim(pairs, 2, 1, 2), {rows, columns});
       const Value g = minimum(gate, splat(gate, limit));
       const Value u = maximum(minimum(up, splat(up, limit)), splat(up, -limit));
       return convert(add(u, 1) * (g * logistic(multiply(g, alpha))), x.dtype());
     }},
};

class Activations : public ::testing::TestWithParam<Activation> {};

TEST_P(Activations, ForwardAndBackward) {
  check_cases(
      "activations", 2, [](const GoldenCase& c) { return is_case(c, GetParam().name); },
      [](const GoldenCase& c, GoldenGraph& g) {
        const bool gated = g.in.contains("g");
        return GetParam().build(c, gated ? g.in["g"] : g.in["x"], gated ? g.in["u"] : Value{});
      });
}

INSTANTIATE_TEST_SUITE_P(Golden, Activations, ::testing::ValuesIn(kActivations),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Golden, Softmax) {
  check_cases(
      "softmax", 10, [](const GoldenCase& c) { return !is_case(c, "log_softmax"); },
      [](const GoldenCase&, GoldenGraph& g) { return softmax(g.in["x"]); });
}

TEST(Golden, LogSoftmax) {
  check_cases(
      "softmax", 2, [](const GoldenCase& c) { return is_case(c, "log_softmax"); },
      [](const GoldenCase&, GoldenGraph& g) {
        const Value x = convert(g.in["x"], DType::f32);
        const Value total = broadcast_in_dim(logsumexp(x), x.shape(), {0});
        return convert(x - total, g.in["x"].dtype());
      });
}

TEST(Golden, LogSumExp) {
  check_cases(
      "logsumexp", 8, [](const GoldenCase&) { return true; },
      [](const GoldenCase&, GoldenGraph& g) { return logsumexp(g.in["x"]); });
}

TEST(Golden, RoundingIsExact) {
  const safetensors::File file(RHEA_SOURCE_DIR "/tests/data/golden/ops/rounding.safetensors");
  for (const auto& [name, dtype] :
       {std::pair("bf16", DType::bf16), {"f16", DType::f16}, {"f16_edges", DType::f16}}) {
    const auto x = safetensors::read_vector<double>(file.at(std::string(name) + ".x"));
    const auto want = safetensors::read_vector<double>(file.at(std::string(name) + ".y"));
    ir::Graph graph;
    const Value in = graph.input("x", {DType::f32, {static_cast<int64_t>(x.size())}});
    graph.output("y", convert(in, dtype));
    for (const Isa isa : usable_isas()) {
      const Numbers got = run_graph(graph, {{"x", x}}, isa).at("y");
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_TRUE(std::isnan(want[i])
                        ? std::isnan(got[i])
                        : got[i] == want[i] && std::signbit(got[i]) == std::signbit(want[i]))
            << name << " of " << x[i] << ": expected " << want[i] << ", got " << got[i];
      }
    }
  }
}

// Values are exact; among equal ones the lowest index comes first.
TEST(Golden, TopK) {
  const safetensors::File file(RHEA_SOURCE_DIR "/tests/data/golden/ops/topk.safetensors");
  int cases = 0;
  for (const auto& tensor : file.tensors()) {
    if (!tensor.name.ends_with(".x")) continue;
    ++cases;
    const std::string name = tensor.name.substr(0, tensor.name.size() - 2);
    SCOPED_TRACE(name);
    const auto x = safetensors::read_vector<double>(file.at(tensor.name));
    const auto values = safetensors::read_vector<double>(file.at(name + ".values"));
    const auto indices = safetensors::read_vector<int64_t>(file.at(name + ".indices_stable"));
    ir::Graph graph;
    const Value in = graph.input("x", {DType::f32, tensor.shape});
    const auto chosen = top_k(in, file.at(name + ".values").shape.back());
    graph.output("values", chosen[0]);
    graph.output("indices", chosen[1]);
    const auto got = run_graph(graph, {{"x", x}}, Isa::plain);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_TRUE(std::isnan(values[i]) ? std::isnan(got.at("values")[i])
                                        : got.at("values")[i] == values[i])
          << "element " << i << ": expected " << values[i] << ", got " << got.at("values")[i];
      EXPECT_EQ(got.at("indices")[i], static_cast<double>(indices[i])) << "element " << i;
    }
  }
  EXPECT_EQ(cases, 7);
}

}  // namespace
}  // namespace rhea::testing
