// Rotary embedding and attention. Goldens are [batch, heads, tokens, dim], ops [tokens of all rows,
// heads, dim].
#include <gtest/gtest.h>

#include "golden_case.h"
#include "rhea/ops/ops.h"

namespace rhea::testing {
namespace {

using ir::Value;
using namespace ops;

Value to_tokens(Value x) {
  return reshape(transpose(x, {0, 2, 1, 3}), {x.dim(0) * x.dim(2), x.dim(1), x.dim(3)});
}

Value from_tokens(Value x, int64_t batch) {
  return transpose(reshape(x, {batch, x.dim(0) / batch, x.dim(1), x.dim(2)}), {0, 2, 1, 3});
}

TEST(Golden, Rotary) {
  check_cases(
      "rotary", 6, [](const GoldenCase& c) { return c.has("x"); },
      [](const GoldenCase& c, GoldenGraph& g) {
        const int64_t batch = c.shape("x")[0];
        const ir::Shape angles = c.shape("cos");
        const int64_t tokens = angles[0] * angles[1];
        // A row of the tables for each token, whatever its position.
        Numbers rows;
        for (int64_t t = 0; t < tokens; ++t) rows.push_back(static_cast<double>(t));
        const ir::Type table{DType::f32, {tokens, angles[2]}};
        const Value cos = g.constant("cos", table, c.numbers("cos"));
        const Value sin = g.constant("sin", table, c.numbers("sin"));
        const Value positions = g.constant("rows", {DType::i32, {tokens}}, rows);
        const bool pairs = c.name().starts_with("pairs");
        return from_tokens(rope(to_tokens(g.in["x"]), cos, sin, positions, pairs), batch);
      });
}

TEST(Golden, Attention) {
  // "full" looks ahead, which a language model never does and the op does not offer.
  check_cases(
      "attention", 18, [](const GoldenCase& c) { return !c.name().starts_with("full"); },
      [](const GoldenCase& c, GoldenGraph& g) {
        const int64_t batch = c.shape("q")[0], tokens = c.shape("q")[2];
        Numbers ids(static_cast<size_t>(batch * tokens), 0.0);
        if (c.has("document_ids")) ids = c.numbers("document_ids");
        Numbers positions;
        for (size_t t = 0; t < ids.size(); ++t) {
          const bool starts = t % static_cast<size_t>(tokens) == 0 || ids[t] != ids[t - 1];
          positions.push_back(starts ? 0 : positions.back() + 1);
        }
        const AttentionOptions options{.scale = c.attribute("scale", 0),
                                       .seq_len = tokens,
                                       .window = static_cast<int64_t>(c.attribute("window", 0)),
                                       .softcap = c.attribute("softcap", 0),
                                       .documents = c.has("document_ids")};
        std::optional<Value> sink;
        if (g.in.contains("sinks")) sink = convert(g.in["sinks"], DType::f32);
        const Value y = attention(
            to_tokens(g.in["q"]), to_tokens(g.in["k"]), to_tokens(g.in["v"]),
            g.constant("positions", {DType::i32, {batch * tokens}}, positions), options, sink);
        return from_tokens(y, batch);
      },
      // Scores of 60 have a last digit of 4e-6, and sums without fused products round twice as
      // often.
      [](const GoldenCase& c) {
        return c.name() == "peaked" ? Tolerances{.plain_factor = 1.5} : Tolerances{};
      });
}

}  // namespace
}  // namespace rhea::testing
