// Kernels of linear_cross_entropy and its gradient: plans the chunks, phases and buffers of
// head_kernels.h.
#include <fmt/core.h>

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/ops/loss/head_kernels.h"
#include "rhea/ops/loss/loss.h"
#include "rhea/ops/pack/layout.h"
#include "rhea/ops/table_per_isa.h"

RHEA_TABLE_PER_ISA(HeadKernels, kHeadKernels, head_kernels)

namespace rhea::ops {
namespace {

using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;

struct State {
  const HeadKernels* kernels = nullptr;
  int dtype = 0;  // 0 f32, 1 bf16
  bool grads = false, has_bias = false;
  float cap = 0;
  int64_t tokens = 0, width = 0, vocabulary = 0, element = 4;
  int64_t chunk = 0, num_chunks = 0, phases_per_chunk = 0;
  int64_t nk_panel = 0, kn_panel = 0;
  // Offsets into the workspace.
  int64_t losses = 0, label_logits = 0, maxima = 0, sums = 0, h_nk = 0, h_kn = 0, exps = 0,
          partial = 0, end = 0;

  int64_t num_blocks() const { return div_up(vocabulary, kForwardWords); }
  int64_t width_panels() const { return div_up(width, kPanel); }
};

enum Phase { kPack, kForward, kNormalise, kBackward, kFinish };

void run(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  auto* workspace = static_cast<char*>(args.workspace);
  const int64_t chunk = args.phase / s.phases_per_chunk;
  const float scale = *args.in[3].as<float>();
  if (chunk == s.num_chunks) {
    const auto* losses = reinterpret_cast<const double*>(workspace + s.losses);
    double sum = 0;
    for (int64_t t = 0; t < s.tokens; ++t) sum += losses[t];
    *args.out[0].as<float>() = static_cast<float>(static_cast<double>(scale) * sum);
    return;
  }
  const int64_t t0 = chunk * s.chunk;
  HeadChunk c{};
  c.width = s.width;
  c.vocabulary = s.vocabulary;
  c.chunk = s.chunk;
  c.count = std::min(s.chunk, s.tokens - t0);
  c.h_row = args.in[0].row_stride;
  c.w_row = args.in[1].row_stride;
  c.h = args.in[0].as<char>() + t0 * c.h_row * s.element;
  c.w = args.in[1].as<char>();
  c.labels = args.in[2].as<int32_t>() + t0;
  c.h_nk = workspace + s.h_nk;
  c.nk_panel = s.nk_panel;
  c.maxima = reinterpret_cast<float*>(workspace + s.maxima);
  c.sums = reinterpret_cast<float*>(workspace + s.sums);
  c.label_logits = reinterpret_cast<float*>(workspace + s.label_logits);
  c.losses = reinterpret_cast<double*>(workspace + s.losses) + t0;
  c.scratch = static_cast<char*>(args.scratch);
  c.bias = s.has_bias ? args.in[kHeadBias].as<float>() : nullptr;
  c.cap = s.cap;
  if (s.grads) {
    c.grad = scale * *args.in[kHeadBias + (s.has_bias ? 1 : 0)].as<float>();
    c.h_kn = workspace + s.h_kn;
    c.kn_panel = s.kn_panel;
    c.exps = workspace + s.exps;
    c.partial = reinterpret_cast<float*>(workspace + s.partial);
    c.dh_row = args.out[1].row_stride;
    c.dh = args.out[1].as<char>() + t0 * c.dh_row * s.element;
    c.dw = args.out[2].as<float>();
    c.dw_row = args.out[2].row_stride;
    c.dbias = s.has_bias ? args.out[3].as<float>() : nullptr;
    c.first = chunk == 0;
  }
  const HeadKernels& k = *s.kernels;
  void (*const item)(const HeadChunk&, int64_t) = [&] {
    switch (args.phase % s.phases_per_chunk) {
      case kPack:
        return k.pack[s.dtype];
      case kForward:
        return k.forward[s.dtype];
      case kNormalise:
        return k.normalise;
      case kBackward:
        return k.backward[s.dtype];
      default:
        return k.finish[s.dtype];
    }
  }();
  for (int64_t i = args.begin; i < args.end; ++i) item(c, i);
}

std::string accepts(const OpInstance& node) {
  const DType dtype = node.in[0].dtype;
  if (dtype != DType::f32 && dtype != DType::bf16)
    return fmt::format("{} operands", dtype_name(dtype));
  if (node.in[0].shape[0] == 0 || node.in[0].shape[1] == 0 || node.in[1].shape[0] == 0)
    return "a dim is 0";
  return "";
}

void plan_memory(State& s) {
  int64_t at = 0;
  const auto take = [&](int64_t bytes) {
    const int64_t start = at;
    at += round_up(bytes, 64);
    return start;
  };
  s.losses = take(s.tokens * 8);
  s.label_logits = take(s.chunk * 4);
  s.maxima = take(s.num_blocks() * s.chunk * 4);
  s.sums = take(s.num_blocks() * s.chunk * 4);
  s.h_nk = take(s.chunk / kPanel * s.nk_panel);
  if (s.grads) {
    s.h_kn = take(s.width_panels() * s.kn_panel);
    s.exps = take(s.vocabulary * exps_row(s.chunk, s.element) * s.element);
    s.partial = take(kHeadGroups * s.chunk * f32_row(s.width) * 4);
  }
  s.end = at;
}

KernelPlan plan_for(const OpInstance& node, Isa isa) {
  auto state = std::make_shared<State>();
  State& s = *state;
  s.kernels = &head_kernels(isa);
  const DType dtype = node.in[0].dtype;
  s.dtype = dtype == DType::bf16 ? 1 : 0;
  s.element = dtype_size(dtype);
  s.grads = is_head_grad(node);
  s.has_bias = has_head_bias(node);
  s.cap = static_cast<float>(node.attrs->f64("cap"));
  s.tokens = node.in[0].shape[0];
  s.width = node.in[0].shape[1];
  s.vocabulary = node.in[1].shape[0];
  s.chunk = fused_tokens_per_chunk(s.tokens, node.attrs->i64("num_chunks"));
  s.num_chunks = div_up(s.tokens, s.chunk);
  s.phases_per_chunk = s.grads ? 5 : 3;
  const DType multiplied = multiplies_bf16(isa) ? dtype : DType::f32;
  s.nk_panel = panel_depth(s.width, multiplied) * kPanel * dtype_size(multiplied);
  s.kn_panel = s.chunk * kPanel * dtype_size(multiplied);
  plan_memory(s);
  KernelPlan plan;
  plan.grid.clear();
  for (int64_t c = 0; c < s.num_chunks; ++c) {
    plan.grid.push_back(s.chunk / kPanel + (s.grads ? s.width_panels() : 0));
    plan.grid.push_back(s.num_blocks());
    plan.grid.push_back(s.chunk / kTokensPerItem);
    if (!s.grads) continue;
    plan.grid.push_back(kHeadGroups);
    plan.grid.push_back(s.chunk / kTokensPerItem);
  }
  plan.grid.push_back(1);
  plan.workspace_bytes = s.end;
  plan.scratch_bytes =
      head_scratch_bytes(s.width, s.chunk, s.element, dtype_size(multiplied), s.grads);
  plan.strided_in = 3;
  plan.strided_out = s.grads ? 6 : 0;
  plan.note = fmt::format("{} chunks of {} tokens, blocks of {} words", s.num_chunks, s.chunk,
                          kForwardWords);
  plan.state = std::move(state);
  plan.run = run;
  return plan;
}

std::vector<ir::CpuKernel> fused_kernels() {
  std::vector<ir::CpuKernel> kernels;
  constexpr const char* names[] = {"fused_plain", "fused_avx2", "fused_avx512",
                                   "fused_avx512_bf16"};
  for (const Isa isa : {Isa::avx512_bf16, Isa::avx512, Isa::avx2, Isa::plain})
    kernels.push_back({names[static_cast<int>(isa)], isa, accepts,
                       [isa](const OpInstance& node) { return plan_for(node, isa); }});
  return kernels;
}

}  // namespace

int64_t fused_tokens_per_chunk(int64_t tokens, int64_t num_chunks) {
  // Larger chunks cost memory and gain 1 %, smaller ones read and write dw more often (256: 4 %
  // slower, 128: 12 %).
  constexpr int64_t kLargest = 512;
  const int64_t asked = std::min(tokens, div_up(4 * tokens, num_chunks));
  return std::min(kLargest, round_up(asked, kPanel));
}

int64_t head_scratch_bytes(int64_t width, int64_t chunk, int64_t element, int64_t multiplied,
                           bool grads) {
  const bool widened = element < multiplied;
  const int64_t forward =
      kForwardWords * (kPanel + (widened ? f32_row(width) : 0)) * int64_t{sizeof(float)};
  if (!grads) return forward;
  const int64_t words = backward_words(multiplied), depth = round_up(words, 64 / multiplied);
  const int64_t strips = words * chunk * multiplied,
                w_panels = div_up(width, kPanel) * kPanel * depth * multiplied,
                gradients = widened ? words * exps_row(chunk, multiplied) * multiplied : 0;
  return std::max(forward, strips + w_panels + gradients);
}

std::vector<ir::CpuKernel> linear_cross_entropy_kernels() {
  auto kernels = fused_kernels();
  kernels.push_back(plain_linear_cross_entropy());
  return kernels;
}
std::vector<ir::CpuKernel> linear_cross_entropy_grad_kernels() {
  auto kernels = fused_kernels();
  kernels.push_back(plain_linear_cross_entropy_grad());
  return kernels;
}

}  // namespace rhea::ops
