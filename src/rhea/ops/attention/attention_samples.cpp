// Cases of the attention rows.
#include "rhea/base/rng.h"
#include "rhea/ops/attention/attention.h"
#include "rhea/ops/attention/attention_shape.h"
#include "rhea/ops/element.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

struct Case {
  std::string name;
  DType dtype = DType::f32;
  int64_t rows = 1, row = 9, heads = 2, kv_heads = 2, width = 8, value_width = 8;
  int64_t document = 0;  // length of a document, 0: one per row
  int64_t window = 0;
  double softcap = 0;
  bool sink = false, bias = false;
  double range = 1;  // of q and k
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {.name = "two_rows", .rows = 2},
      {.name = "grouped", .rows = 2, .row = 11, .heads = 6, .kv_heads = 2, .width = 10},
      {.name = "window", .row = 13, .window = 3},
      {.name = "window_1", .row = 7, .heads = 4, .window = 1},
      {.name = "documents", .rows = 2, .row = 13, .document = 5},
      {.name = "documents_of_1", .row = 6, .heads = 4, .document = 1},
      {.name = "documents_window", .row = 23, .document = 9, .window = 4},
      {.name = "sink", .heads = 4, .sink = true},
      {.name = "softcap", .softcap = 0.75},
      {.name = "bias", .rows = 2, .row = 11, .heads = 8, .kv_heads = 4, .bias = true},
      {.name = "bias_documents", .row = 13, .document = 5, .bias = true},
      {.name = "bias_softcap", .heads = 4, .softcap = 0.75, .sink = true, .bias = true},
      {.name = "bias_f64", .dtype = DType::f64, .bias = true},
      {.name = "value_narrower", .width = 14, .value_width = 6},
      {.name = "value_wider", .width = 5, .value_width = 19},
      {.name = "peaked", .row = 12, .range = 20},
      {.name = "one_token", .row = 1, .heads = 4},
      {.name = "bf16", .dtype = DType::bf16, .row = 21, .heads = 4, .width = 16, .value_width = 16},
      {.name = "bf16_all",
       .dtype = DType::bf16,
       .rows = 2,
       .row = 19,
       .heads = 4,
       .document = 8,
       .window = 6,
       .softcap = 2,
       .sink = true},
      {.name = "f16", .dtype = DType::f16},
      {.name = "f64", .dtype = DType::f64, .heads = 4, .document = 4, .sink = true},
      {.name = "no_tokens", .rows = 0},
      {.name = "no_heads", .heads = 0, .kv_heads = 0},
      {.name = "no_width", .width = 0},
      {.name = "no_value_width", .value_width = 0},
  };
  return list;
}

// Longer rows, so that kernels with blocks cross their seams. Too large for central differences.
const std::vector<Case>& long_cases() {
  static const std::vector<Case> list = {
      {.name = "long", .row = 261, .width = 16, .value_width = 16},
      {.name = "long_grouped",
       .row = 200,
       .heads = 4,
       .kv_heads = 1,
       .width = 40,
       .value_width = 24},
      {.name = "long_documents", .row = 300, .width = 64, .value_width = 64, .document = 77},
      {.name = "long_window", .row = 290, .width = 20, .value_width = 20, .window = 70},
      {.name = "long_bias",
       .rows = 2,
       .row = 290,
       .width = 64,
       .value_width = 64,
       .document = 150,
       .bias = true},
      {.name = "long_bf16_bias",
       .dtype = DType::bf16,
       .row = 210,
       .heads = 4,
       .kv_heads = 2,
       .width = 20,
       .value_width = 12,
       .window = 100,
       .sink = true,
       .bias = true},
      {.name = "long_bf16",
       .dtype = DType::bf16,
       .row = 261,
       .heads = 4,
       .width = 64,
       .value_width = 64},
      {.name = "long_bf16_all",
       .dtype = DType::bf16,
       .rows = 2,
       .row = 210,
       .heads = 4,
       .width = 30,
       .value_width = 18,
       .document = 130,
       .window = 90,
       .softcap = 3,
       .sink = true},
  };
  return list;
}

// The f64 values of a sample's operand, rounded to its type, made here because o and lse of a
// gradient sample follow from them.
std::vector<double> draw(uint64_t seed, const ir::SampleInput& input) {
  const RngKey key = rng_key(seed, "attention_samples");
  std::vector<double> values(static_cast<size_t>(ir::num_elements(input.type.shape)));
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = input.low + (input.high - input.low) * rng_uniform(key, i);
    dispatch_float(input.type.dtype, [&]<class T>() {
      values[i] =
          static_cast<double>(static_cast<Accum<T>>(static_cast<T>(static_cast<Accum<T>>(x))));
    });
  }
  return values;
}

ir::Sample forward_sample(const Case& c) {
  const int64_t tokens = c.rows * c.row;
  std::vector<double> positions;
  for (int64_t t = 0; t < tokens; ++t)
    positions.push_back(static_cast<double>(c.document > 0 ? t % c.row % c.document : t % c.row));
  ir::Sample sample{
      .name = c.name,
      .inputs = {{.type = {c.dtype, {tokens, c.heads, c.width}}, .low = -c.range, .high = c.range},
                 {.type = {c.dtype, {tokens, c.kv_heads, c.width}},
                  .low = -c.range,
                  .high = c.range},
                 {.type = {c.dtype, {tokens, c.kv_heads, c.value_width}}},
                 {.type = {DType::i32, {tokens}}, .values = positions}},
      .attrs = {{"scale", 0.4},
                {"seq_len", c.row},
                {"window", c.window},
                {"softcap", c.softcap},
                {"documents", int64_t{1}},
                {"has_sink", int64_t{c.sink}},
                {"has_bias", int64_t{c.bias}}}};
  if (c.sink) sample.inputs.push_back({.type = {c.dtype, {c.heads}}});
  // More positions than a row has; differences of up to 6, so that they decide.
  if (c.bias)
    sample.inputs.push_back({.type = {DType::f32, {c.heads, c.row + 3}}, .low = -3, .high = 3});
  return sample;
}

ir::Sample grad_sample(const Case& c) {
  ir::Sample sample = forward_sample(c);
  std::vector<std::vector<double>> in;
  std::vector<ir::Type> in_types;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    auto& input = sample.inputs[i];
    if (input.values.empty()) input.values = draw(i, input);
    in.push_back(input.values);
    in_types.push_back(input.type);
  }
  const std::vector<ir::Type> out_types = kAttention.infer(in_types, sample.attrs);
  std::vector<std::vector<double>> out;
  for (const ir::Type& type : out_types)
    out.emplace_back(static_cast<size_t>(ir::num_elements(type.shape)));
  attention_reference({in, out, in_types, out_types, sample.attrs});
  sample.inputs.push_back({.type = out_types[0], .values = out[0]});
  sample.inputs.push_back({.type = out_types[1], .values = out[1]});
  sample.inputs.push_back({.type = out_types[0]});
  if (c.heads == 4) {
    sample.inputs.push_back({.type = out_types[1]});
    sample.attrs.set("has_lse_grad", int64_t{1});
  }
  sample.check_vjp = false;  // the row has no vjp
  // Scores of 1000: one unit of lse in f32 is 6e-5, and so much the probabilities are off.
  if (c.range > 1) sample.tolerance_scale = 20;
  return sample;
}

}  // namespace

std::vector<ir::Sample> attention_samples(bool grad) {
  std::vector<ir::Sample> made;
  for (const Case& c : cases()) made.push_back(grad ? grad_sample(c) : forward_sample(c));
  for (const Case& c : long_cases()) {
    made.push_back(grad ? grad_sample(c) : forward_sample(c));
    made.back().check_vjp = false;
  }
  return made;
}

}  // namespace rhea::ops
