// Stock tensors of parameters that store them in another order.
#include "rhea/parameter_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rhea {
namespace {

using testing::ElementsAre;

std::vector<float> values(const checkpoint::NamedTensor& tensor) {
  const auto* data = static_cast<const float*>(tensor.data);
  return {data, data + tensor.num_elements()};
}

nn::ParameterPart block(const char* fqn, const ir::Shape& stored, const ir::Shape& begin,
                        const ir::Shape& stock, const std::vector<int64_t>& dims = {},
                        int64_t first_row = 0, int64_t rows = 0) {
  nn::ParameterPart part;
  part.fqn = fqn;
  part.shape = stock;
  part.block = nn::stored_in(stored, begin, stock, dims, first_row, rows);
  return part;
}

TEST(StockTensors, RowsArePlacesAndBlocksAreCopies) {
  // `a` stored as it is; `b` transposed; `c` split: its first row beside `b`, the second one alone.
  const nn::Parameter first{.fqn = "joined",
                            .shape = {2, 3},
                            .parts = {block("b", {2, 3}, {0, 0}, {2, 2}, {1, 0}),
                                      block("c", {2, 3}, {0, 2}, {2, 2}, {1, 0}, 0, 1)}};
  const nn::Parameter second{
      .fqn = "rest", .shape = {1, 2}, .parts = {block("c", {1, 2}, {0, 0}, {2, 2}, {}, 1, 1)}};
  const nn::Parameter plain{.fqn = "a", .shape = {2}, .parts = {{.fqn = "a", .row_end = 2}}};
  std::vector<float> joined = {1, 2, 5, 3, 4, 6}, rest = {7, 8}, whole = {9, 10};
  StockTensors tensors;
  tensors.add(first, DType::f32, joined.data(), "p.", ".s");
  tensors.add(second, DType::f32, rest.data(), "p.", ".s");
  tensors.add(plain, DType::f32, whole.data());
  tensors.gather();
  ASSERT_EQ(tensors.tensors().size(), 3U);
  const auto &b = tensors.tensors()[0], &c = tensors.tensors()[1], &a = tensors.tensors()[2];
  EXPECT_EQ(b.name, "p.b.s");
  EXPECT_THAT(values(b), ElementsAre(1, 3, 2, 4));
  EXPECT_EQ(c.name, "p.c.s");
  EXPECT_THAT(values(c), ElementsAre(5, 6, 7, 8));
  EXPECT_EQ(a.data, whole.data());

  static_cast<float*>(b.data)[1] = 30;
  static_cast<float*>(c.data)[3] = 80;
  tensors.scatter();
  EXPECT_THAT(joined, ElementsAre(1, 2, 5, 30, 4, 6));
  EXPECT_THAT(rest, ElementsAre(7, 80));
}

}  // namespace
}  // namespace rhea
