// From outside: a kernel for an op that Rhea has, an op with a saved tensor, and an override that
// puts the op into every feed-forward.
//   rhea check --module qwen3 --config qwen3_debugmodel --override.imports my_kernels.cpp
#include "gated.h"

namespace {

const rhea::ir::OpDef kGated = my::gated_row("my_gated");

// Rotates pairs (i, i + P) of f32 heads; what it refuses is left to the kernels of the op.
std::string accepts(const my::OpInstance& node) {
  if (node.in[0].dtype != my::DType::f32) return "computes in f32 only";
  if (node.attrs->flag("interleaved")) return "rotates pairs (i, i + P) only";
  const int64_t width = node.in[0].shape[2], pairs = node.in[1].shape[1];
  if (width != 2 * pairs)
    return fmt::format("needs whole heads rotated, got {} of {} dims", 2 * pairs, width);
  return "";
}

void rotate(const rhea::ir::KernelArgs& args, const my::OpInstance& node) {
  const int64_t heads = node.in[0].shape[1], pairs = node.in[1].shape[1];
  const float sign = node.attrs->flag("inverse") ? -1 : 1;
  for (int64_t t = args.begin; t < args.end; ++t) {
    const int64_t position = args.in[3].as<const int32_t>()[t];
    const float* cos = args.in[1].as<const float>() + position * pairs;
    const float* sin = args.in[2].as<const float>() + position * pairs;
    for (int64_t n = 0; n < heads; ++n) {
      const float* x = args.in[0].as<const float>() + (t * heads + n) * 2 * pairs;
      float* y = args.out[0].as<float>() + (t * heads + n) * 2 * pairs;
      for (int64_t i = 0; i < pairs; ++i) {
        const float a = x[i], b = x[i + pairs], c = cos[i], s = sign * sin[i];
        y[i] = a * c - b * s;
        y[i + pairs] = a * s + b * c;
      }
    }
  }
}

}  // namespace

RHEA_PLUGIN(p) {
  p.cpu_kernel("rope", {.name = "my_rope",
                        .accepts = accepts,
                        .items = [](const my::OpInstance& node) { return node.in[0].shape[0]; },
                        .run = rotate});
  my::add_feed_forward<&kGated>(p, "my_feed_forward");
}
