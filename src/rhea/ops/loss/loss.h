// What the loss rows share.      T tokens, V vocabulary, D model dim
//
// loss = scale * sum over labels != -100 of (logsumexp(logits) - logits[label]). A label outside
// [0,V) other than -100 is the data loader's error; kernels make the loss NaN then and touch no
// memory outside the tensors.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "rhea/ir/op_def.h"
#include "rhea/ops/for_each.h"

namespace rhea::ops {

inline constexpr int64_t kIgnoredLabel = -100;

// The f64 function behind both rows: the loss of a token by its V logits, 0 without a label. Where
// `dlogits` is not null, it gets their gradient, times `factor`.
double token_loss_f64(std::span<const double> logits, double label, double factor, double* dlogits);

// The reference of linear_cross_entropy and of its gradient, with the same bits for every
// `for_each`.
void linear_cross_entropy_reference(const ir::ReferenceArgs& args, const ForEach& for_each);

// Number of tokens whose logits exist at a time, by the definition.
int64_t tokens_per_chunk(int64_t tokens, int64_t num_chunks);
// The same in the fused kernels: four times as many, because they keep one value per logit where a
// loss on whole logits keeps three or four (logit, its f32 copy, log-probability, gradient); 512 at
// most, and rounded up to whole panels of 64.
int64_t fused_tokens_per_chunk(int64_t tokens, int64_t num_chunks);

// Operands of linear_cross_entropy: h, w, labels, scale, and the bias where there is one. Its
// gradient takes the same and dloss at the end, and adds dbias at the end of its results.
inline constexpr size_t kHeadBias = 4;
bool is_head_grad(const ir::OpInstance& node);
bool has_head_bias(const ir::OpInstance& node);

// Kernels of the rows, fastest first.
std::vector<ir::CpuKernel> cross_entropy_kernels();
std::vector<ir::CpuKernel> cross_entropy_grad_kernels();
std::vector<ir::CpuKernel> linear_cross_entropy_kernels();
std::vector<ir::CpuKernel> linear_cross_entropy_grad_kernels();

// The last ones of their lists: any dtype.
ir::CpuKernel plain_cross_entropy();
ir::CpuKernel plain_cross_entropy_grad();
ir::CpuKernel plain_linear_cross_entropy();
ir::CpuKernel plain_linear_cross_entropy_grad();

}  // namespace rhea::ops
