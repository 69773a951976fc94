// Products, cross entropy and embedding against published numbers (tests/data/golden/ops, made with
// PyTorch in f64): every kernel that runs here, outputs and gradients, f32 and bf16.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "rhea/ops/ops.h"
#include "tests/support/golden_file.h"
#include "tests/support/kernel_run.h"

namespace rhea::testing {
namespace {

using Values = std::vector<double>;

// Relative to the largest value of the tensor, as the golden's README states them.
constexpr double kOutput = 2e-6, kGradient = 5e-6, kBf16 = 1.5e-2;

void expect_result(const Call& call, const std::vector<Values>& in, size_t result,
                   const Values& wanted, double tolerance) {
  ThreadPool pool(2);
  for (const ir::CpuKernel* kernel : usable_kernels(call)) {
    const auto out = run(call, *kernel, in, pool);
    EXPECT_LE(relative_error(out[result].values(), wanted), tolerance)
        << call.op->name << " " << kernel->name << " result " << result;
  }
}

Values transposed(const Values& x, int64_t rows, int64_t columns) {
  Values y(x.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      y[static_cast<size_t>(j * rows + i)] = x[static_cast<size_t>(i * columns + j)];
  }
  return y;
}

ir::Attrs contract(int64_t lhs, int64_t rhs, DType dtype) {
  return {{"lhs_contract", lhs}, {"rhs_contract", rhs}, {"dtype", dtype}};
}

TEST(LinearGolden, ProductAndBothGradients) {
  const GoldenFile file("linear");
  for (const std::string name : {"bias", "long_k", "bias_bf16", "long_k_bf16"}) {
    SCOPED_TRACE(name);
    const DType t = file.dtype(name + ".x");
    const ir::Shape& w = file.shape(name + ".w");
    const int64_t n = w[0], k = w[1];
    const Values x = file.values(name + ".x"), dy = file.values(name + ".dy"),
                 weight = file.values(name + ".w");
    const int64_t rows = static_cast<int64_t>(x.size()) / k;
    // The row has no bias: it is taken off the expected result.
    Values y = file.values(name + ".y");
    if (file.has(name + ".b")) {
      const Values bias = file.values(name + ".b");
      for (size_t i = 0; i < y.size(); ++i) y[i] -= bias[i % bias.size()];
    }
    const double output = t == DType::bf16 ? kBf16 : kOutput,
                 gradient = t == DType::bf16 ? kBf16 : kGradient;
    expect_result(Call(ops::kDotGeneral, {{t, {rows, k}}, {t, {n, k}}}, contract(1, 1, t)),
                  {x, weight}, 0, y, output);
    expect_result(Call(ops::kDotGeneral, {{t, {rows, n}}, {t, {n, k}}}, contract(1, 0, t)),
                  {dy, weight}, 0, file.values(name + ".dx"), gradient);
    expect_result(
        Call(ops::kDotGeneral, {{t, {rows, n}}, {t, {rows, k}}}, contract(0, 0, DType::f32)),
        {dy, x}, 0, file.values(name + ".dw"), gradient);
    // Both operands stored the other way round.
    expect_result(Call(ops::kDotGeneral, {{t, {k, rows}}, {t, {n, k}}}, contract(0, 1, DType::f32)),
                  {transposed(x, rows, k), weight}, 0, y, output);
  }
}

TEST(LinearGolden, CrossEntropyAndItsGradient) {
  const GoldenFile file("cross_entropy");
  for (const std::string name :
       {"mean_smooth0", "sum_smooth0", "huge", "certain", "minus_inf_elsewhere", "all_ignored_sum",
        "mean_smooth0_bf16", "sum_smooth0_bf16", "huge_bf16"}) {
    SCOPED_TRACE(name);
    const DType t = file.dtype(name + ".x");
    const Values labels = file.values(name + ".labels");
    double valid = 0;
    for (const double label : labels) valid += label != -100 ? 1 : 0;
    const double scale = name.find("sum") == std::string::npos ? 1 / valid : 1;
    const ir::Type logits{t, file.shape(name + ".x")},
        ids{DType::i32, {static_cast<int64_t>(labels.size())}}, number{DType::f32, {}};
    const std::vector<Values> in = {file.values(name + ".x"), labels, {scale}};
    expect_result(Call(ops::kCrossEntropy, {logits, ids, number}, {}), in, 0,
                  file.values(name + ".y"), kOutput);
    std::vector<Values> grad_in = in;
    grad_in.push_back(file.values(name + ".dy"));
    expect_result(Call(ops::kCrossEntropyGrad, {logits, ids, number, number}, {}), grad_in, 0,
                  file.values(name + ".dx"), t == DType::bf16 ? kBf16 : kGradient);
  }
}

// The fused head with the identity as its weight: its hidden states are the logits.
TEST(LinearGolden, FusedHeadOnTheSameLogits) {
  const GoldenFile file("cross_entropy");
  for (const std::string name : {"mean_smooth0", "sum_smooth0", "huge", "sum_smooth0_bf16"}) {
    SCOPED_TRACE(name);
    const DType t = file.dtype(name + ".x");
    const ir::Shape& shape = file.shape(name + ".x");
    const int64_t vocabulary = shape[1];
    const Values labels = file.values(name + ".labels");
    double valid = 0;
    for (const double label : labels) valid += label != -100 ? 1 : 0;
    Values identity(static_cast<size_t>(vocabulary * vocabulary));
    for (int64_t i = 0; i < vocabulary; ++i) identity[static_cast<size_t>(i * vocabulary + i)] = 1;
    const ir::Type number{DType::f32, {}};
    const Call call(
        ops::kLinearCrossEntropyGrad,
        {{t, shape}, {t, {vocabulary, vocabulary}}, {DType::i32, {shape[0]}}, number, number},
        {{"num_chunks", int64_t{2}}});
    const std::vector<Values> in = {file.values(name + ".x"),
                                    identity,
                                    labels,
                                    {name.find("sum") == std::string::npos ? 1 / valid : 1},
                                    file.values(name + ".dy")};
    expect_result(call, in, 0, file.values(name + ".y"), kOutput);
    expect_result(call, in, 1, file.values(name + ".dx"), t == DType::bf16 ? kBf16 : kGradient);
  }
}

TEST(LinearGolden, EmbeddingAndItsGradient) {
  const GoldenFile file("embedding");
  for (const std::string name : {"repeated", "repeated_bf16", "one_id_many_times"}) {
    SCOPED_TRACE(name);
    const DType t = file.dtype(name + ".w");
    const ir::Shape& table = file.shape(name + ".w");
    const Values ids = file.values(name + ".ids");
    const auto tokens = static_cast<int64_t>(ids.size());
    const ir::Type ids_type{DType::i32, {tokens}};
    expect_result(Call(ops::kEmbedding, {{t, table}, ids_type}, {}),
                  {file.values(name + ".w"), ids}, 0, file.values(name + ".y"), 0);
    expect_result(
        Call(ops::kEmbeddingGrad, {{t, {tokens, table[1]}}, ids_type}, {{"rows", table[0]}}),
        {file.values(name + ".dy"), ids}, 0, file.values(name + ".dw"), kGradient);
  }
}

}  // namespace
}  // namespace rhea::testing
