// Embedding, linear layers, norms and cross entropy.
#include <gtest/gtest.h>

#include "golden_case.h"
#include "rhea/ops/ops.h"

namespace rhea::testing {
namespace {

using ir::Value;
using namespace ops;

const auto kAll = [](const GoldenCase&) { return true; };

TEST(Golden, Embedding) {
  check_cases("embedding", 3, kAll, [](const GoldenCase& c, GoldenGraph& g) {
    const ir::Shape shape = c.shape("ids");
    const int64_t tokens = shape[0] * shape[1];
    const Value ids = g.constant("ids", {DType::i32, {tokens}}, c.numbers("ids"));
    return reshape(embedding(g.in["w"], ids), {shape[0], shape[1], g.in["w"].dim(1)});
  });
}

TEST(Golden, Linear) {
  check_cases("linear", 4, kAll, [](const GoldenCase&, GoldenGraph& g) {
    const Value y = linear(g.in["x"], g.in["w"]);
    if (!g.in.contains("b")) return y;
    return y + broadcast_in_dim(g.in["b"], y.shape(), {y.type().rank() - 1});
  });
}

TEST(Golden, RmsNorm) {
  check_cases("rms_norm", 12, kAll, [](const GoldenCase& c, GoldenGraph& g) {
    return rms_norm(g.in["x"], g.in["w"], c.attribute("eps", 0), c.attribute("weight_offset", 0));
  });
}

TEST(Golden, LayerNorm) {
  const auto optional = [](GoldenGraph& g, const char* name) {
    return g.in.contains(name) ? std::optional(g.in[name]) : std::nullopt;
  };
  check_cases(
      "layer_norm", 7, kAll,
      [&](const GoldenCase& c, GoldenGraph& g) {
        return layer_norm(g.in["x"], optional(g, "w"), optional(g, "b"), c.attribute("eps", 0));
      },
      [](const GoldenCase& c) {
        return c.name() == "large_mean" ? Tolerances{1e-4, 1e-4, 1e-4} : Tolerances{};
      });
}

// ---- cross entropy

bool is_mean(const GoldenCase& c) { return c.attributes().value("reduction", "mean") == "mean"; }

Value labels_of(const GoldenCase& c, GoldenGraph& g) {
  return g.constant("labels", {DType::i32, c.shape("labels")}, c.numbers("labels"));
}

// 1 / number of valid labels for the mean, else 1.
Value scale_of(const GoldenCase& c, GoldenGraph& g) {
  double valid = 0;
  for (const double label : c.numbers("labels")) valid += label >= 0;
  return g.constant("scale", {DType::f32, {}}, {is_mean(c) ? 1 / valid : 1});
}

bool is_plain(const GoldenCase& c) {
  return c.attributes().value("reduction", "mean") != "none" &&
         c.attribute("label_smoothing", 0) == 0;
}

TEST(Golden, CrossEntropy) {
  check_cases("cross_entropy", 10, is_plain, [](const GoldenCase& c, GoldenGraph& g) {
    return cross_entropy(g.in["x"], labels_of(c, g), scale_of(c, g));
  });
}

// Logits formed in chunks as x I^T: the same numbers.
TEST(Golden, LinearCrossEntropy) {
  for (const int64_t chunks : {1, 3}) {
    check_cases(
        "cross_entropy", 9,
        // -inf times 0 is NaN in a product
        [](const GoldenCase& c) { return is_plain(c) && c.name() != "minus_inf_elsewhere"; },
        [chunks](const GoldenCase& c, GoldenGraph& g) {
          const int64_t n = g.in["x"].dim(1);
          Numbers identity(static_cast<size_t>(n * n), 0.0);
          for (int64_t i = 0; i < n; ++i) identity[static_cast<size_t>(i * n + i)] = 1;
          const Value w = g.constant("identity", {c.dtype(), {n, n}}, identity);
          return linear_cross_entropy(g.in["x"], w, labels_of(c, g), scale_of(c, g), chunks);
        });
  }
}

// Reductions that the op does not have, from simpler ops: one loss per label, label smoothing.
TEST(Golden, CrossEntropyFromSimplerOps) {
  check_cases(
      "cross_entropy", 6, [](const GoldenCase& c) { return !is_plain(c); },
      [](const GoldenCase& c, GoldenGraph& g) {
        const Value x = convert(g.in["x"], DType::f32), labels = labels_of(c, g);
        const int64_t rows = x.dim(0), n = x.dim(1);
        const Value ids = iota(g.graph, {rows, n}, DType::i32, 1);
        const Value hit = compare(ids, broadcast_in_dim(labels, {rows, n}, {0}), "EQ");
        const Value ignored = g.graph.constant(-100, labels.type());
        const Value valid = convert(compare(labels, ignored, "NE"), DType::f32);
        const Value logs = broadcast_in_dim(logsumexp(x), {rows, n}, {0}) - x;
        const Value none = g.graph.constant(0, x.type());
        const Value loss = reduce_sum(select(hit, logs, none), {1});
        if (c.attributes().value("reduction", "mean") == "none")
          return convert(loss, g.in["x"].dtype());
        const double smoothing = c.attribute("label_smoothing", 0);
        const Value smooth =
            multiply(reduce_sum(logs, {1}), smoothing / static_cast<double>(n)) * valid;
        return reduce_sum(multiply(loss, 1 - smoothing) + smooth, {0}) * scale_of(c, g);
      });
}

}  // namespace
}  // namespace rhea::testing
