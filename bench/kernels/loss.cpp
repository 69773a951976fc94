// The ends of a step: head with cross entropy, gradient norm, optimizer.
#include <fmt/core.h>

#include "bench/kernels/case.h"
#include "bench/kernels/models.h"

namespace rhea::bench {
namespace {

void add_losses(const Model& m, DType t) {
  const auto name = [&](const char* op) {
    return fmt::format("loss/{}/{}/{}", op, dtype_name(t), m.name);
  };
  const Operand labels = {{DType::i32, {kTokens}},
                          [V = m.V](int64_t i) { return static_cast<double>(i * 7919 % V); }};
  const Operand hidden = {{t, {kTokens, m.D}}}, weight = {{t, {m.V, m.D}}},
                scalar = {{DType::f32, {}}};
  const ir::Attrs chunks = {{"num_chunks", int64_t{8}}};
  add_case({name("head"), &ops::kLinearCrossEntropy, {hidden, weight, labels, scalar}, chunks});
  add_case({name("head_grad"),
            &ops::kLinearCrossEntropyGrad,
            {hidden, weight, labels, scalar, scalar},
            chunks});
}

void add_optimizer(const Model& m) {
  // The four matrices of Adam lie beyond the caches.
  const Operand matrix = {{DType::f32, {4 * m.F, m.D}}}, scalar = {{DType::f32, {}}},
                step = {{DType::i64, {}}, [](int64_t) { return 10.0; }};
  const std::vector<Operand> operands = {matrix, matrix, matrix, matrix, scalar, scalar, step};
  const auto name = [&](const char* op) { return fmt::format("optimizer/{}/{}", op, m.name); };
  add_case({name("adam"), &ops::kAdam, operands, {}, true});
  for (const DType t : {DType::bf16, DType::f32})
    add_case({name(t == DType::bf16 ? "adam_pack_bf16" : "adam_pack_f32"),
              &ops::kAdamPack,
              operands,
              {{"copy_dtype", t},
               {"copies", std::vector<int64_t>{static_cast<int64_t>(ir::Layout::panels_nk),
                                               static_cast<int64_t>(ir::Layout::panels_kn)}}},
              true});
  add_case({name("global_norm"), &ops::kGlobalNorm, {matrix}, {}});
}

}  // namespace

void add_loss_and_optimizer() {
  for (const Model& m : kModels) {
    for (const DType t : {DType::bf16, DType::f32}) add_losses(m, t);
    add_optimizer(m);
  }
}

}  // namespace rhea::bench
