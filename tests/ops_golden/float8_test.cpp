// 8-bit floats: rounding against PyTorch's tables to the bit, linear layers against torchao's
// emulation.
#include <gtest/gtest.h>

#include <cmath>

#include "golden_case.h"
#include "rhea/ops/float8/float8.h"
#include "rhea/passes/autodiff.h"

namespace rhea::testing {
namespace {

using ir::Value;
using ops::Float8;
using safetensors::read_vector;

TEST(Float8, RoundsAsPyTorchToTheBit) {
  const safetensors::File file(RHEA_SOURCE_DIR "/tests/data/golden/ops/low_bit.safetensors");
  for (const auto& [name, format] :
       {std::pair<std::string, Float8>("e4m3fn", Float8::e4m3), {"e5m2", Float8::e5m2}}) {
    const auto values = read_vector<float>(file.at(name + ".values"));
    const auto codes = read_vector<uint8_t>(file.at(name + ".round_saturating.codes"));
    auto x = read_vector<double>(file.at(name + ".round.x"));
    Numbers want;
    for (const uint8_t code : codes) want.push_back(static_cast<double>(values[code]));
    // Every value of the format is itself, but for the infinities that saturation takes away.
    for (const float value : values) {
      if (std::isinf(value)) continue;
      x.push_back(static_cast<double>(value));
      want.push_back(static_cast<double>(value));
    }
    ir::Graph graph;
    const Value in = graph.input("x", {DType::f32, {static_cast<int64_t>(x.size())}});
    graph.output("y", ops::round_float8(in, format));
    for (const Isa isa : usable_isas()) {
      const Numbers got = run_graph(graph, {{"x", x}}, isa).at("y");
      for (size_t i = 0; i < x.size(); ++i) {
        const bool same = std::isnan(want[i])
                              ? std::isnan(got[i])
                              : got[i] == want[i] && std::signbit(got[i]) == std::signbit(want[i]);
        EXPECT_TRUE(same) << name << " of " << x[i] << ": expected " << want[i] << ", got "
                          << got[i];
      }
    }
  }
}

TEST(Float8, ScalesFillTheRangeAndZerosStay) {
  ir::Graph graph;
  const Value x = graph.input("x", {DType::f32, {3, 4}});
  graph.output("rows", ops::through_float8(x, Float8::e4m3, 1));
  graph.output("columns", ops::through_float8(x, Float8::e4m3, 0));
  graph.output("whole", ops::through_float8(x, Float8::e5m2, {}));
  // The largest of a row is exact whatever it is; 1/3 of it is 149.33, which e4m3 has as 144 or
  // 160.
  const Numbers in = {3, 1, -1, 0, 0, 0, 0, 0, 1e-40, 0, 0, 0};
  const auto got = run_graph(graph, {{"x", in}}, Isa::plain);
  const double third = 3.0 * 144 / 448;
  const Numbers rows = got.at("rows");
  EXPECT_EQ(rows[0], 3);
  EXPECT_NEAR(rows[1], third, 1e-6);
  EXPECT_NEAR(rows[2], -third, 1e-6);
  for (size_t i = 3; i < 8; ++i) EXPECT_EQ(rows[i], 0) << i;
  EXPECT_TRUE(std::isfinite(rows[8]));
  EXPECT_EQ(got.at("columns")[1], 1) << "alone in its column";
  EXPECT_EQ(got.at("whole")[0], 3);
  EXPECT_NEAR(got.at("whole")[1], 3.0 * 20480 / 57344, 1e-6);  // a third is 19114.7
}

TEST(Float8, LinearLayersAreTorchaos) {
  const safetensors::File file(RHEA_SOURCE_DIR "/tests/data/golden/float8/linear.safetensors");
  for (const auto& [name, recipe] :
       {std::pair<std::string, ops::Float8Recipe>("rowwise", ops::Float8Recipe::rowwise),
        {"rowwise_with_gw_hp", ops::Float8Recipe::rowwise_with_gw_hp},
        {"tensorwise", ops::Float8Recipe::tensorwise}}) {
    ir::Graph graph;
    std::map<std::string, Numbers> feed;
    const auto input = [&](const char* tensor) {
      feed[tensor] = read_vector<double>(file.at(tensor));
      return graph.input(tensor, {DType::f32, file.at(tensor).shape});
    };
    const Value x = input("x"), w = input("w"), dy = input("dy");
    const Value y = ops::float8_linear(x, w, recipe);
    const Value loss = ops::reduce_sum(y * dy, {0, 1});
    const Value wrt[] = {x, w};
    const auto grads = passes::gradients(graph, loss, wrt);
    graph.output("y", y);
    graph.output("dx", grads[0]);
    graph.output("dw", grads[1]);
    for (const Isa isa : usable_isas()) {
      const auto got = run_graph(graph, feed, isa);
      for (const char* what : {"y", "dx", "dw"}) {
        const auto want = read_vector<double>(file.at(name + "." + what));
        ASSERT_EQ(got.at(what).size(), want.size());
        double largest = 0, worst = 0;
        for (size_t i = 0; i < want.size(); ++i) {
          largest = std::max(largest, std::abs(want[i]));
          worst = std::max(worst, std::abs(got.at(what)[i] - want[i]));
        }
        EXPECT_LE(worst, 2e-6 * largest) << name << " " << what;
        EXPECT_GT(largest, 0);
      }
    }
  }
}

}  // namespace
}  // namespace rhea::testing
