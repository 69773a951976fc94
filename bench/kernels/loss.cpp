// The ends of a step: head with cross entropy, the loss on whole logits, gradient norm, optimizer.
#include <fmt/core.h>

#include "bench/kernels/case.h"
#include "bench/kernels/models.h"

namespace rhea::bench {
namespace {

// `tokens` of a microbatch: loss/head/bf16/qwen3_0_6b of kTokens, .../qwen3_0_6b.512 of others.
void add_losses(const Model& m, DType t, int64_t tokens) {
  const std::string of_model = tokens == kTokens ? m.name : fmt::format("{}.{}", m.name, tokens);
  const auto name = [&](std::string_view op) {
    return fmt::format("loss/{}/{}/{}", op, dtype_name(t), of_model);
  };
  const Operand labels = {{DType::i32, {tokens}},
                          [V = m.V](int64_t i) { return static_cast<double>(i * 7919 % V); }};
  const Operand hidden = {{t, {tokens, m.D}}}, weight = {{t, {m.V, m.D}}},
                logits = {{t, {tokens, m.V}}}, scalar = {{DType::f32, {}}};
  const auto add_head = [&](const std::string& end, int64_t num_chunks, const char* instead) {
    const ir::Attrs chunks = {{"num_chunks", num_chunks}};
    add_case({.name = name("head" + end),
              .op = &ops::kLinearCrossEntropy,
              .operands = {hidden, weight, labels, scalar},
              .attrs = chunks,
              .instead = instead});
    add_case({.name = name("head_grad" + end),
              .op = &ops::kLinearCrossEntropyGrad,
              .operands = {hidden, weight, labels, scalar, scalar},
              .attrs = chunks,
              .instead = instead});
  };
  add_head("", 8, "");
  // What num_chunks makes of it: chunks of the fused kernels have 4 * tokens / num_chunks tokens.
  for (const int64_t chunk : {512, 256, 128, 64})
    add_head(fmt::format("_chunks_of_{}", chunk), 4 * tokens / chunk, "num_chunks 8");
  const char* unlike = "the head in chunks";
  add_case({.name = name("whole_logits"),
            .op = &ops::kCrossEntropy,
            .operands = {logits, labels, scalar},
            .instead = unlike});
  add_case({.name = name("whole_logits_grad"),
            .op = &ops::kCrossEntropyGrad,
            .operands = {logits, labels, scalar, scalar},
            .instead = unlike});
}

void add_optimizer(const Model& m) {
  // The four matrices of Adam lie beyond the caches.
  const Operand matrix = {{DType::f32, {4 * m.F, m.D}}}, scalar = {{DType::f32, {}}},
                step = {{DType::i64, {}}, [](int64_t) { return 10.0; }};
  const std::vector<Operand> operands = {matrix, matrix, matrix, matrix, scalar, scalar, step};
  const auto name = [&](const char* op) { return fmt::format("optimizer/{}/{}", op, m.name); };
  add_case({name("adam"), &ops::kAdam, operands, {}, true});
  // The input gradient of an f32 layer reads the weight where it lies (passes/pack_weights.cpp).
  const auto nk = static_cast<int64_t>(ir::Layout::panels_nk),
             kn = static_cast<int64_t>(ir::Layout::panels_kn);
  for (const DType t : {DType::bf16, DType::f32})
    add_case(
        {name(t == DType::bf16 ? "adam_pack_bf16" : "adam_pack_f32"),
         &ops::kAdamPack,
         operands,
         {{"copy_dtype", t},
          {"copies", t == DType::bf16 ? std::vector<int64_t>{nk, kn} : std::vector<int64_t>{nk}}},
         true});
  add_case({name("global_norm"), &ops::kGlobalNorm, {matrix}, {}});
}

}  // namespace

void add_loss_and_optimizer() {
  for (const Model& m : kModels) {
    for (const DType t : {DType::bf16, DType::f32})
      for (const int64_t tokens : {kTokens, int64_t{512}}) add_losses(m, t, tokens);
    add_optimizer(m);
  }
}

}  // namespace rhea::bench
