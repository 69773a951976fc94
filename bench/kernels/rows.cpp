// What lies between two products, op by op: norms, rotary embedding, SwiGLU, casts, embedding.
// Bounded by memory, or by a cache where operands and results fit one. step.cpp has what training
// makes of them.
#include <fmt/core.h>

#include "bench/kernels/case.h"
#include "bench/kernels/models.h"

namespace rhea::bench {
namespace {

void add_model(const Model& m, DType t) {
  const auto name = [&](const char* op) {
    return fmt::format("rows/{}/{}/{}", op, dtype_name(t), m.name);
  };
  const ir::Type x{t, {kTokens, m.D}}, w{t, {m.D}}, hidden{t, {kTokens, m.F}};
  const ir::Type heads{t, {kTokens, m.heads, m.H}}, w_head{t, {m.H}};
  const ir::Type table{DType::f32, {kTokens, m.H / 2}};
  const Operand position = {{DType::i32, {kTokens}},
                            [](int64_t i) { return static_cast<double>(i); }};
  const Operand ids = {{DType::i32, {kTokens}},
                       [V = m.V](int64_t i) { return static_cast<double>(i * 7919 % V); }};
  const ir::Attrs eps = {{"eps", 1e-6}};
  const auto add_joined = [&](const char* op, const ir::OpDef& row, std::vector<Operand> operands,
                              ir::Attrs attrs) {
    add_case({.name = name(op),
              .op = &row,
              .operands = std::move(operands),
              .attrs = std::move(attrs),
              .instead = "see step/"});
  };
  add_joined("rms_norm", ops::kRmsNorm, {{x}, {w}}, eps);
  add_joined("rms_norm_grad", ops::kRmsNormGrad, {{x}, {w}, {x}}, eps);
  add_joined("head_norm", ops::kRmsNorm, {{heads}, {w_head}}, eps);
  add_joined("head_norm_grad", ops::kRmsNormGrad, {{heads}, {w_head}, {heads}}, eps);
  add_joined("layer_norm", ops::kLayerNorm, {{x}, {w}, {w}}, eps);
  add_joined("layer_norm_grad", ops::kLayerNormGrad, {{x}, {w}, {x}}, eps);
  for (const int64_t interleaved : {0, 1})
    add_joined(interleaved == 1 ? "rope_interleaved" : "rope", ops::kRope,
               {{heads}, {table}, {table}, position}, {{"interleaved", interleaved}});
  add_case({name("swiglu"), &ops::kSwiglu, {{hidden}, {hidden}}, {}});
  add_case({name("swiglu_grad"), &ops::kSwigluGrad, {{hidden}, {hidden}, {hidden}}, {}});
  const DType other = t == DType::bf16 ? DType::f32 : DType::bf16;
  add_case({name(other == DType::bf16 ? "convert_to_bf16" : "convert_to_f32"),
            &ops::kConvert,
            {{hidden}},
            {{"dtype", other}}});
  add_case({name("embedding"), &ops::kEmbedding, {{{t, {m.V, m.D}}}, ids}, {}});
  add_case({name("embedding_grad"), &ops::kEmbeddingGrad, {{x}, ids}, {{"rows", m.V}}});
}

}  // namespace

void add_rows() {
  for (const DType t : {DType::bf16, DType::f32})
    for (const Model& m : kModels) add_model(m, t);
}

}  // namespace rhea::bench
