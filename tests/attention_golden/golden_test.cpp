// The rows against published numbers (tests/data/golden/ops, made with PyTorch in f64): every
// kernel that runs here, outputs and gradients, f32 and bf16.
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

// [B, H, T, D] <-> [B T, H, D]
Values swap_heads_and_tokens(const Values& x, int64_t batch, int64_t outer, int64_t inner,
                             int64_t width) {
  Values y(x.size());
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < outer; ++i)
      for (int64_t j = 0; j < inner; ++j)
        for (int64_t d = 0; d < width; ++d)
          y[static_cast<size_t>(((b * inner + j) * outer + i) * width + d)] =
              x[static_cast<size_t>(((b * outer + i) * inner + j) * width + d)];
  return y;
}
Values to_tokens(const GoldenFile& file, const std::string& name) {
  const ir::Shape& s = file.shape(name);
  return swap_heads_and_tokens(file.values(name), s[0], s[1], s[2], s[3]);
}

std::vector<Values> values_of(const std::vector<Tensor>& tensors) {
  std::vector<Values> made;
  for (const Tensor& tensor : tensors) made.push_back(tensor.values());
  return made;
}

struct Tolerance {
  double output, gradient;
};
Tolerance tolerance(DType dtype) {
  return dtype == DType::bf16 ? Tolerance{1.5e-2, 1.5e-2} : Tolerance{2e-6, 5e-6};
}

struct AttentionCase {
  const char* name;
  double scale = 0.31622776601683794;
  int64_t window = 0;
  double softcap = 0;
};
const AttentionCase kAttentionCases[] = {{"causal_gqa"},
                                         {"causal_mha"},
                                         {"window3", 0.31622776601683794, 3},
                                         {"documents"},
                                         {"sinks"},
                                         {"sinks_window3", 0.31622776601683794, 3},
                                         {"softcap", 0.3, 0, 2.0},
                                         {"mla_dims", 0.25},
                                         {"peaked"}};

void check_attention(const GoldenFile& file, const AttentionCase& c, DType dtype) {
  const std::string at = std::string(c.name) + (dtype == DType::bf16 ? "_bf16." : ".");
  const ir::Shape q = file.shape(at + "q"), k = file.shape(at + "k"), v = file.shape(at + "v");
  const int64_t tokens = q[0] * q[2], row = q[2];
  Values positions(static_cast<size_t>(tokens));
  const Values documents =
      file.has(at + "document_ids") ? file.values(at + "document_ids") : Values();
  for (size_t t = 0; t < positions.size(); ++t) {
    const bool row_start = t % static_cast<size_t>(row) == 0;
    const bool restarts = !documents.empty() && !row_start && documents[t] != documents[t - 1];
    positions[t] = row_start || restarts ? 0 : positions[t - 1] + 1;
  }
  const bool has_sink = file.has(at + "sinks");
  const ir::Attrs attrs = {{"scale", c.scale},
                           {"seq_len", row},
                           {"window", c.window},
                           {"softcap", c.softcap},
                           {"has_sink", int64_t{has_sink}}};
  std::vector<ir::Type> types = {{dtype, {tokens, q[1], q[3]}},
                                 {dtype, {tokens, k[1], k[3]}},
                                 {dtype, {tokens, v[1], v[3]}},
                                 {DType::i32, {tokens}}};
  std::vector<Values> in = {to_tokens(file, at + "q"), to_tokens(file, at + "k"),
                            to_tokens(file, at + "v"), positions};
  if (has_sink) {
    types.push_back({dtype, {q[1]}});
    in.push_back(file.values(at + "sinks"));
  }
  const Call forward(ops::kAttention, types, attrs);
  types.insert(types.end(), {forward.out_types[0], forward.out_types[1], forward.out_types[0]});
  const Call backward(ops::kAttentionGrad, types, attrs);
  const auto forward_kernels = usable_kernels(forward), backward_kernels = usable_kernels(backward);
  ASSERT_EQ(forward_kernels.size(), backward_kernels.size());
  ThreadPool pool(2);
  for (size_t i = 0; i < forward_kernels.size(); ++i) {
    const std::vector<Values> out = values_of(run(forward, *forward_kernels[i], in, pool));
    // Scores of 60 without fused multiply-adds: one more rounding of 4e-6 in each.
    const bool rounds_more =
        std::string_view(c.name) == "peaked" && forward_kernels[i]->isa == Isa::plain;
    EXPECT_LE(relative_error(out[0], to_tokens(file, at + "y")),
              tolerance(dtype).output * (rounds_more ? 1.5 : 1))
        << at << forward_kernels[i]->name;
    std::vector<Values> grad_in = in;
    grad_in.insert(grad_in.end(), {out[0], out[1], to_tokens(file, at + "dy")});
    const std::vector<Values> grads = values_of(run(backward, *backward_kernels[i], grad_in, pool));
    const char* names[] = {"dq", "dk", "dv"};
    for (size_t g = 0; g < 3; ++g)
      EXPECT_LE(relative_error(grads[g], to_tokens(file, at + names[g])), tolerance(dtype).gradient)
          << at << names[g] << " " << backward_kernels[i]->name;
    if (has_sink) {
      EXPECT_LE(relative_error(grads[3], file.values(at + "dsinks")), tolerance(dtype).gradient)
          << at << "dsinks " << backward_kernels[i]->name;
    }
  }
}

TEST(Golden, Attention) {
  const GoldenFile file("attention");
  for (const AttentionCase& c : kAttentionCases)
    for (const DType dtype : {DType::f32, DType::bf16}) check_attention(file, c, dtype);
}

// Two equal logits and a sink of ln 2: the sink takes half of the softmax.
TEST(Attention, W16ASinkIsPartOfTheFunction) {
  ThreadPool pool(1);
  const Call call(ops::kAttention,
                  {{DType::f32, {2, 1, 2}},
                   {DType::f32, {2, 1, 2}},
                   {DType::f32, {2, 1, 2}},
                   {DType::i32, {2}},
                   {DType::f32, {1}}},
                  {{"scale", 1.0}, {"seq_len", int64_t{2}}, {"has_sink", int64_t{1}}});
  for (const auto& [sink, weight] : {std::pair{std::log(2.0), 0.25}, std::pair{0.0, 1.0 / 3}})
    for (const ir::CpuKernel* kernel : usable_kernels(call)) {
      // Each key's value is a unit vector, so the result of the second token is its weights.
      const auto out = values_of(
          run(call, *kernel, {{0, 0, 0, 0}, {1, 2, 3, 4}, {1, 0, 0, 1}, {0, 1}, {sink}}, pool));
      EXPECT_NEAR(out[0][2], weight, 1e-6) << kernel->name;
      EXPECT_NEAR(out[0][3], weight, 1e-6) << kernel->name;
    }
}

TEST(Golden, Rotary) {
  const GoldenFile file("rotary");
  ThreadPool pool(2);
  for (const std::string name :
       {"half", "pairs", "partial", "half_bf16", "pairs_bf16", "partial_bf16"}) {
    const std::string at = name + ".";
    const DType dtype = name.ends_with("_bf16") ? DType::bf16 : DType::f32;
    const ir::Shape x = file.shape(at + "x"), table = file.shape(at + "cos");
    const int64_t tokens = x[0] * x[2];
    Values rows(static_cast<size_t>(tokens));  // the tables have one row per token
    for (size_t t = 0; t < rows.size(); ++t) rows[t] = static_cast<double>(t);
    for (const int64_t inverse : {0, 1}) {
      const Call call(ops::kRope,
                      {{dtype, {tokens, x[1], x[3]}},
                       {DType::f32, {tokens, table[2]}},
                       {DType::f32, {tokens, table[2]}},
                       {DType::i32, {tokens}}},
                      {{"interleaved", int64_t{name.starts_with("pairs")}}, {"inverse", inverse}});
      const std::vector<Values> in = {to_tokens(file, at + (inverse ? "dy" : "x")),
                                      file.values(at + "cos"), file.values(at + "sin"), rows};
      for (const ir::CpuKernel* kernel : usable_kernels(call))
        EXPECT_LE(relative_error(run(call, *kernel, in, pool)[0].values(),
                                 to_tokens(file, at + (inverse ? "dx" : "y"))),
                  tolerance(dtype).output)
            << at << kernel->name << " inverse " << inverse;
    }
  }
}

// Cases "<case>.x .w .b .y .dy .dx .dw .db" of the norms.
void check_norm(const GoldenFile& file, const std::string& name, const ir::OpDef& row,
                const ir::OpDef& grad_row, const ir::Attrs& attrs, double widen = 1) {
  const std::string at = name + ".";
  const DType dtype = name.ends_with("_bf16") ? DType::bf16 : DType::f32;
  std::vector<ir::Type> types = {{dtype, file.shape(at + "x")}};
  std::vector<Values> in = {file.values(at + "x")};
  for (const char* operand : {"w", "b"}) {
    if (!file.has(at + operand)) continue;
    types.push_back({dtype, file.shape(at + operand)});
    in.push_back(file.values(at + operand));
  }
  const Call forward(row, types, attrs);
  if (file.has(at + "b")) {
    types.pop_back();
  }
  types.push_back({dtype, file.shape(at + "x")});
  const Call backward(grad_row, types, attrs);
  ThreadPool pool(2);
  for (const ir::CpuKernel* kernel : usable_kernels(forward))
    EXPECT_LE(relative_error(run(forward, *kernel, in, pool)[0].values(), file.values(at + "y")),
              widen * tolerance(dtype).output)
        << at << kernel->name;
  if (file.has(at + "b")) in.pop_back();
  in.push_back(file.values(at + "dy"));
  for (const ir::CpuKernel* kernel : usable_kernels(backward)) {
    const std::vector<Values> grads = values_of(run(backward, *kernel, in, pool));
    size_t g = 0;
    for (const char* operand : {"dx", "dw", "db"})
      if (file.has(at + operand)) {
        EXPECT_LE(relative_error(grads.at(g++), file.values(at + operand)),
                  widen * tolerance(dtype).gradient)
            << at << operand << " " << kernel->name;
      }
  }
}

TEST(Golden, RmsNorm) {
  const GoldenFile file("rms_norm");
  for (const std::string suffix : {"", "_bf16"}) {
    const auto check = [&](const std::string& name, double eps, double offset = 0) {
      check_norm(file, name + suffix, ops::kRmsNorm, ops::kRmsNormGrad,
                 {{"eps", eps}, {"weight_offset", offset}});
    };
    check("eps1e-06", 1e-6);
    check("eps1e-05", 1e-5);
    check("offset_one", 1e-6, 1);
    check("tiny", 1e-6);
    check("large", 1e-6);
  }
  for (const char* name : {"zero_row", "per_head"})
    check_norm(file, name, ops::kRmsNorm, ops::kRmsNormGrad, {{"eps", 1e-6}});
}

TEST(Golden, LayerNorm) {
  const GoldenFile file("layer_norm");
  const auto check = [&](const std::string& name, double eps, int64_t weight, int64_t bias,
                         double widen = 1) {
    check_norm(file, name, ops::kLayerNorm, ops::kLayerNormGrad,
               {{"eps", eps}, {"has_weight", weight}, {"has_bias", bias}}, widen);
  };
  for (const std::string suffix : {"", "_bf16"}) {
    check("affine" + suffix, 1e-5, 1, 1);
    check("no_bias" + suffix, 1e-5, 1, 0);
    check("plain" + suffix, 1e-6, 0, 0);
  }
  check("large_mean", 1e-5, 1, 1, 20);  // 1e-4 for gradients, as its README says
}

TEST(Golden, Swiglu) {
  const GoldenFile file("activations");
  ThreadPool pool(2);
  for (const std::string at : {"swiglu.", "swiglu_bf16."}) {
    const DType dtype = at == "swiglu." ? DType::f32 : DType::bf16;
    const ir::Type type{dtype, file.shape(at + "g")};
    const Call forward(ops::kSwiglu, {type, type}, {});
    const Call backward(ops::kSwigluGrad, {type, type, type}, {});
    std::vector<Values> in = {file.values(at + "g"), file.values(at + "u")};
    for (const ir::CpuKernel* kernel : usable_kernels(forward))
      EXPECT_LE(relative_error(run(forward, *kernel, in, pool)[0].values(), file.values(at + "y")),
                tolerance(dtype).output)
          << at << kernel->name;
    in.push_back(file.values(at + "dy"));
    for (const ir::CpuKernel* kernel : usable_kernels(backward)) {
      const std::vector<Values> grads = values_of(run(backward, *kernel, in, pool));
      EXPECT_LE(relative_error(grads[0], file.values(at + "dg")), tolerance(dtype).gradient)
          << at << kernel->name;
      EXPECT_LE(relative_error(grads[1], file.values(at + "du")), tolerance(dtype).gradient)
          << at << kernel->name;
    }
  }
}

}  // namespace
}  // namespace rhea::testing
