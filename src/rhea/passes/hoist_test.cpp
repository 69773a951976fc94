// What moves to the prepare graph and what stays.
#include "rhea/passes/hoist.h"

#include <gtest/gtest.h>

#include "rhea/base/cpu_features.h"
#include "rhea/ops/onednn_version.h"
#include "rhea/passes/pack_weights.h"
#include "rhea/passes/test_graphs.h"
#include "tests/support/scoped_environment.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Layout;
using ir::Type;
using ir::Value;
using test::count;

bool is_parameter(std::string_view name) { return name.ends_with("weight"); }

std::vector<std::string> names(const std::vector<ir::GraphOutput>& outputs) {
  std::vector<std::string> result;
  for (const auto& out : outputs) result.push_back(out.name);
  return result;
}

// y = x bf16(w)^T * bf16(n)
Graph scaled_product(int64_t rows) {
  Graph graph;
  const Value x = graph.input("x", {DType::bf16, {rows, 4}});
  const Value w = graph.input("a.weight", {DType::f32, {5, 4}});
  const Value n = graph.input("n.weight", {DType::f32, {5}});
  const Value y = ops::linear(x, ops::convert(w, DType::bf16));
  graph.output("y", y * ops::broadcast_in_dim(ops::convert(n, DType::bf16), {rows, 5}, {1}));
  return graph;
}

TEST(Hoist, CastsOfParametersRunOncePerStep) {
  const Graph graph = scaled_product(3);
  const Hoisted split = hoist(graph, is_parameter);
  EXPECT_EQ(names(split.prepare.outputs()),
            (std::vector<std::string>{"convert[bf16](a.weight)", "convert[bf16](n.weight)"}));
  EXPECT_EQ(count(split.prepare, ops::kConvert), 2);
  EXPECT_EQ(count(split.rest, ops::kConvert), 0);
  // What would grow stays where it is read.
  EXPECT_EQ(count(split.rest, ops::kBroadcastInDim), 1);
  EXPECT_EQ(split.prepare.find_input("x"), nullptr);
  EXPECT_EQ(split.rest.find_input("a.weight"), nullptr);

  const auto inputs = test::some_inputs(graph);
  auto rest_inputs = ops::evaluate(split.prepare, inputs);
  rest_inputs["x"] = inputs.at("x");
  EXPECT_EQ(ops::evaluate(split.rest, rest_inputs), ops::evaluate(graph, inputs));
}

TEST(Hoist, ChainsAreNamedByTheirExpression) {
  Graph graph;
  const Value a = graph.input("a.weight", {DType::f32, {2, 4}});
  const Value b = graph.input("b.weight", {DType::f32, {3, 4}});
  const Value joined = ops::concatenate(std::vector{a, b}, 0);
  graph.output("y", ops::linear(graph.input("x", {DType::f32, {3, 4}}), joined));
  graph.output("z", ops::linear(graph.input("z_in", {DType::f32, {3, 4}}), a));
  const Hoisted split = hoist(graph, is_parameter);
  EXPECT_EQ(names(split.prepare.outputs()),
            (std::vector<std::string>{"concatenate[0](a.weight,b.weight)"}));
  EXPECT_NE(split.rest.find_input("a.weight"), nullptr);  // read as it is by z
}

TEST(Hoist, OtherArgumentsGiveOtherNames) {
  Graph graph;
  const Value w = graph.input("w.weight", {DType::f32, {4, 4}});
  const Value x = graph.input("x", {DType::f32, {2, 4}});
  graph.output("a", ops::linear(x, ops::slice_dim(w, 0, 0, 2)));
  graph.output("b", ops::linear(x, ops::slice_dim(w, 0, 2, 4)));
  const auto made = names(hoist(graph, is_parameter).prepare.outputs());
  ASSERT_EQ(made.size(), 2u);
  EXPECT_NE(made[0], made[1]);
}

TEST(Hoist, GraphsOverTheSameParametersShareWhatIsPrepared) {
  const Hoisted train = hoist(scaled_product(3), is_parameter);
  const Graph other = scaled_product(7);
  Hoisted evaluate = hoist(other, is_parameter);
  Graph prepare = train.prepare;
  const size_t before = prepare.outputs().size();
  merge_prepare(prepare, evaluate.prepare);
  EXPECT_EQ(prepare.outputs().size(), before);

  Graph extra;
  const Value w = extra.input("a.weight", {DType::f32, {5, 4}});
  const Value v = extra.input("new.weight", {DType::f32, {5, 4}});
  extra.output("s",
               ops::linear(extra.input("x", {DType::f16, {3, 4}}), ops::convert(w, DType::f16)));
  extra.output("t",
               ops::linear(extra.input("u", {DType::f16, {3, 4}}), ops::convert(v, DType::f16)));
  merge_prepare(prepare, hoist(extra, is_parameter).prepare);
  EXPECT_EQ(names(prepare.outputs()),
            (std::vector<std::string>{"convert[bf16](a.weight)", "convert[bf16](n.weight)",
                                      "convert[f16](a.weight)", "convert[f16](new.weight)"}));
  EXPECT_EQ(prepare.inputs().size(), 3u);
}

// Layouts of the packs in the graph of one product.
std::vector<Layout> packs(int64_t rows, int64_t n, int64_t k, DType dtype, int64_t rhs_contract,
                          std::string_view name = "w.weight") {
  Graph graph;
  const bool nk = rhs_contract == 1;
  const Value x = graph.input("x", {dtype, {rows, k}});
  const Value w = graph.input(name, {dtype, nk ? ir::Shape{n, k} : ir::Shape{k, n}});
  graph.output("y", ops::dot_general(x, w, 1, rhs_contract, dtype));
  const Graph packed = pack_weights(graph, is_parameter, active_isa());
  std::vector<Layout> layouts;
  for (const ir::Node& node : packed.nodes()) {
    if (node.op == &ops::kPack) layouts.push_back(node.outputs[0].layout);
  }
  EXPECT_EQ(packed.type(packed.find_output("y")->value), graph.type(graph.find_output("y")->value));
  return layouts;
}

// Without matrix tiles, whatever the machine has.
class PackWeights : public testing::Test {
  const support::ScopedEnvironment isa_{"RHEA_ISA", "avx512_bf16"};
};

TEST_F(PackWeights, WhereAProductOfManyRowsReadsAParameter) {
  for (const DType dtype : {DType::f32, DType::bf16})
    EXPECT_EQ(packs(256, 64, 64, dtype, 1), std::vector{Layout::panels_nk});
  EXPECT_EQ(packs(256, 64, 96, DType::bf16, 0), std::vector{Layout::panels_kn});
}

TEST_F(PackWeights, NotWhereItCostsMoreThanItSaves) {
  EXPECT_TRUE(packs(16, 64, 64, DType::f32, 1).empty());   // few rows
  EXPECT_TRUE(packs(256, 8, 64, DType::f32, 1).empty());   // few columns: mostly padding
  EXPECT_TRUE(packs(256, 64, 8, DType::f32, 1).empty());   // short sums
  EXPECT_TRUE(packs(256, 64, 64, DType::f64, 1).empty());  // no such kernel
  EXPECT_TRUE(packs(256, 64, 96, DType::f32, 0).empty());  // rows are pieces of panels already
  EXPECT_TRUE(packs(256, 64, 64, DType::f32, 1, "batch").empty());
}

// On tiles the library multiplies, and reads weights of bf16 in rows.
TEST_F(PackWeights, NotForProductsOnMatrixTiles) {
  const support::ScopedEnvironment isa("RHEA_ISA", "amx_bf16");
  const bool tiles = detected_isa() == Isa::avx512_bf16 && ops::onednn_version() != "not built in";
  for (const int64_t rows : {128, 2048}) {
    for (const int64_t rhs_contract : {0, 1})
      EXPECT_EQ(packs(rows, 64, 96, DType::bf16, rhs_contract).empty(), tiles);
  }
  EXPECT_EQ(packs(256, 64, 64, DType::f32, 1), std::vector{Layout::panels_nk});
}

TEST_F(PackWeights, CastParametersArePackedAndHoisted) {
  Graph graph;
  const Value x = graph.input("x", {DType::bf16, {256, 64}});
  const Value w = graph.input("w.weight", {DType::f32, {128, 64}});
  const Value bf16 = ops::convert(w, DType::bf16);
  const Value y = ops::linear(x, bf16);
  graph.output("y", y);
  graph.output("dx", ops::dot_general(y, bf16, 1, 0, DType::bf16));
  graph.output("dw", ops::dot_general(y, x, 0, 0, DType::f32));  // no weight on the right
  const Hoisted split = hoist(pack_weights(graph, is_parameter, active_isa()), is_parameter);
  EXPECT_EQ(names(split.prepare.outputs()),
            (std::vector<std::string>{"pack[1](convert[bf16](w.weight))",
                                      "pack[2](convert[bf16](w.weight))"}));
  EXPECT_EQ(count(split.rest, ops::kPack), 0);
  EXPECT_EQ(count(split.rest, ops::kDotGeneral), 3);
}

}  // namespace
}  // namespace rhea::passes
