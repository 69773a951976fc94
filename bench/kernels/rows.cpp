// What lies between two products: norms, rotary embedding, SwiGLU, casts, embedding. Bounded by
// memory, or by a cache where operands and results fit one.
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
  add_case({name("rms_norm"), &ops::kRmsNorm, {{x}, {w}}, eps});
  add_case({name("rms_norm_grad"), &ops::kRmsNormGrad, {{x}, {w}, {x}}, eps});
  add_case({name("head_norm"), &ops::kRmsNorm, {{heads}, {w_head}}, eps});
  add_case({name("head_norm_grad"), &ops::kRmsNormGrad, {{heads}, {w_head}, {heads}}, eps});
  add_case({name("layer_norm"), &ops::kLayerNorm, {{x}, {w}, {w}}, eps});
  add_case({name("layer_norm_grad"), &ops::kLayerNormGrad, {{x}, {w}, {x}}, eps});
  for (const int64_t interleaved : {0, 1})
    add_case({name(interleaved == 1 ? "rope_interleaved" : "rope"),
              &ops::kRope,
              {{heads}, {table}, {table}, position},
              {{"interleaved", interleaved}}});
  add_case({name("swiglu"), &ops::kSwiglu, {{hidden}, {hidden}}, {}});
  add_case({name("swiglu_grad"), &ops::kSwigluGrad, {{hidden}, {hidden}, {hidden}}, {}});
  add_case({name("embedding"), &ops::kEmbedding, {{{t, {m.V, m.D}}}, ids}, {}});
  add_case({name("embedding_grad"), &ops::kEmbeddingGrad, {{x}, ids}, {{"rows", m.V}}});
}

}  // namespace

void add_rows() {
  for (const DType t : {DType::bf16, DType::f32})
    for (const Model& m : kModels) add_model(m, t);
}

}  // namespace rhea::bench
