// The norm taken from products: which gradients, under which names; nothing else changes.
#include "rhea/passes/norm_in_products.h"

#include <gtest/gtest.h>

#include "rhea/ir/print.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/table.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Value;

std::string squares_of(std::string_view output) {
  return output.starts_with("grad.") ? "squares." + std::string(output.substr(5)) : "";
}

// x [4,3] and dy [4,2], f32: grad.w is a product, grad.twice a sum, "other" no gradient.
Graph three_products() {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 3}}),
              dy = graph.input("dy", {DType::f32, {4, 2}});
  const Value dw = ops::dot_general(dy, x, 0, 0, DType::f32);
  graph.output("grad.w", dw);
  graph.output("grad.twice", dw + ops::dot_general(dy, x, 0, 0, DType::f32));
  graph.output("other", ops::dot_general(x, dy, 0, 0, DType::f32));
  return graph;
}

TEST(NormInProducts, TakesWhatAProductLeavesAsAGradient) {
  const Graph graph = norm_in_products(three_products(), Isa::avx512, squares_of);
  ASSERT_EQ(graph.outputs().size(), 4U);
  EXPECT_EQ(graph.outputs()[3].name, "squares.w");
  EXPECT_EQ(graph.type(graph.outputs()[3].value), (ir::Type{DType::f64, {}}));
  EXPECT_EQ(graph.node(graph.outputs()[0].value).op, &ops::kWeightGradSquares);
  EXPECT_EQ(graph.outputs()[0].value.node, graph.outputs()[3].value.node);
  EXPECT_EQ(graph.node(graph.outputs()[2].value).op, &ops::kDotGeneral);
  int changed = 0;
  for (const auto& node : graph.nodes()) changed += node.op == &ops::kWeightGradSquares ? 1 : 0;
  EXPECT_EQ(changed, 1) << ir::to_text(graph);
}

TEST(NormInProducts, LeavesOtherProductsAlone) {
  Graph graph;
  const Value x = graph.input("x", {DType::f64, {4, 3}}),
              dy = graph.input("dy", {DType::f64, {4, 2}});
  graph.output("grad.f64", ops::dot_general(dy, x, 0, 0, DType::f64));
  const Value b = graph.input("b", {DType::bf16, {4, 3}}),
              w = graph.input("w", {DType::bf16, {2, 3}});
  graph.output("grad.forward", ops::dot_general(b, w, 1, 1, DType::f32));
  graph.output("grad.bf16", ops::dot_general(b, b, 0, 0, DType::bf16));
  EXPECT_EQ(ir::to_text(norm_in_products(graph, Isa::avx512, squares_of)), ir::to_text(graph));
}

TEST(NormInProducts, TwoGradientsOfOneProductHaveItsSquares) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 3}});
  const Value dw = ops::dot_general(x, x, 0, 0, DType::f32);
  graph.output("grad.a", dw);
  graph.output("grad.b", dw);
  const Graph after = norm_in_products(graph, Isa::avx512, squares_of);
  ASSERT_EQ(after.outputs().size(), 4U);
  EXPECT_EQ(after.outputs()[2].name, "squares.a");
  EXPECT_EQ(after.outputs()[3].name, "squares.b");
  EXPECT_EQ(after.outputs()[2].value.node, after.outputs()[3].value.node);
}

TEST(NormInProducts, DonationsStay) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {3, 3}});
  graph.output("grad.w", ops::dot_general(x, x, 0, 0, DType::f32), "x");
  EXPECT_EQ(norm_in_products(graph, Isa::avx512, squares_of).outputs()[0].donates, "x");
}

class KernelFromOutside : public testing::TestWithParam<const char*> {};

TEST_P(KernelFromOutside, SeesItsNodesAsBefore) {
  const ops::ScopedAdditions scope;
  ops::add_cpu_kernel(
      GetParam(),
      ops::to_cpu_kernel(
          {.name = "mine", .run = [](const ir::KernelArgs&, const ir::OpInstance&) {}}),
      "test");
  EXPECT_EQ(ir::to_text(norm_in_products(three_products(), Isa::avx512, squares_of)),
            ir::to_text(three_products()));
}
INSTANTIATE_TEST_SUITE_P(Ops, KernelFromOutside, testing::Values("dot_general", "global_norm"));

// Below AVX-512 oneDNN comes first where the build has it.
TEST(NormInProducts, OnlyWhereTheSameKernelRunsIt) {
  const auto first_of_f32 = [](Isa isa) {
    for (const ir::CpuKernel& kernel : ops::kDotGeneral.cpu) {
      const bool of_bf16 = kernel.name == "panels_avx512_bf16" || kernel.name == "onednn_amx";
      if (kernel.isa <= isa && !of_bf16) return kernel.name;
    }
    return std::string_view();
  };
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512, Isa::avx512_bf16}) {
    const Graph after = norm_in_products(three_products(), isa, squares_of);
    EXPECT_EQ(after.outputs().size() == 4, first_of_f32(isa).starts_with("panels_"))
        << isa_name(isa) << ": " << first_of_f32(isa);
  }
}

}  // namespace
}  // namespace rhea::passes
