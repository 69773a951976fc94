// Row of adam: AdamW and Adam as torch.optim has them, one pass over memory.
#include <algorithm>
#include <cmath>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/optimizer/adam.h"
#include "rhea/ops/per_isa.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::Attrs;
using ir::KernelArgs;
using ir::KernelPlan;
using ir::num_elements;
using ir::OpInstance;
using ir::Sample;
using ir::Type;

std::vector<Type> infer(std::span<const Type> in, const Attrs& attrs) {
  check_adam_operands(in, attrs);
  return {in[0], in[2], in[3]};
}

constexpr int64_t kBlock = 1 << 15;

struct State {
  AdamAttrs attrs;
  AdamFn adam = nullptr;
  int64_t count = 0;
};

void run(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  const AdamScalars scalars = adam_scalars(s.attrs, args);
  const AdamPointers at{args.in[0].data,  args.in[1].data,  args.in[2].data, args.in[3].data,
                        args.out[0].data, args.out[1].data, args.out[2].data};
  const int64_t begin = args.begin * kBlock;
  s.adam(at, begin, std::min(args.end * kBlock, s.count) - begin, scalars);
}

KernelPlan plan(const OpInstance& node, Isa isa) {
  auto state = std::make_shared<State>();
  state->attrs = adam_attrs(*node.attrs);
  state->adam = optimizer_kernels(isa).adam[optimizer_dtype(node.in[0].dtype)][optimizer_dtype(
      node.in[1].dtype)][optimizer_dtype(node.in[2].dtype)];
  state->count = num_elements(node.in[0].shape);
  KernelPlan plan;
  plan.grid = {div_up(state->count, kBlock)};
  plan.state = std::move(state);
  plan.run = run;
  plan.in_place = {{0, 0}, {2, 1}, {3, 2}};
  return plan;
}

std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const int64_t decoupled : {int64_t{1}, int64_t{0}}) {
    for (const auto& [p, g, m] : {std::array{DType::f32, DType::f32, DType::f32},
                                  std::array{DType::f32, DType::bf16, DType::f32},
                                  std::array{DType::f32, DType::f32, DType::bf16},
                                  std::array{DType::bf16, DType::f32, DType::f32},
                                  std::array{DType::bf16, DType::bf16, DType::bf16}}) {
      Sample s = adam_sample({5, 7}, p, g, m);
      s.name = std::string(decoupled ? "adamw" : "adam") + "_" + std::string(dtype_name(p)) + "_" +
               std::string(dtype_name(g)) + "_" + std::string(dtype_name(m));
      s.attrs.set("decoupled", decoupled);
      all.push_back(std::move(s));
    }
  }
  Sample blocks = adam_sample({70, 1000}, DType::f32, DType::f32, DType::f32);
  blocks.name = "blocks";
  all.push_back(std::move(blocks));
  Sample scalar = adam_sample({}, DType::f32, DType::f32, DType::f32);
  scalar.name = "scalar";
  all.push_back(std::move(scalar));
  Sample empty = adam_sample({0, 4}, DType::f32, DType::f32, DType::f32);
  empty.name = "empty";
  all.push_back(std::move(empty));
  return all;
}

}  // namespace

void check_adam_operands(std::span<const Type> in, const Attrs&) {
  if (in.size() != 7) throw Error("takes p, g, m, v, clip, lr, step; got {} operands", in.size());
  const auto state_dtype = [](DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; };
  for (size_t i = 0; i < 4; ++i) {
    if (in[i].shape != in[0].shape || !state_dtype(in[i].dtype) ||
        in[i].layout != ir::Layout::row_major)
      throw Error("p, g, m and v must have one shape and be f32 or bf16, got {}, {}, {}, {}",
                  to_string(in[0]), to_string(in[1]), to_string(in[2]), to_string(in[3]));
  }
  if (in[2].dtype != in[3].dtype)
    throw Error("m and v must have one dtype, got {} and {}", to_string(in[2]), to_string(in[3]));
  const Type number{DType::f32, {}}, step{DType::i64, {}};
  if (in[4] != number || in[5] != number || in[6] != step)
    throw Error("clip and lr must be f32[], step i64[], got {}, {}, {}", to_string(in[4]),
                to_string(in[5]), to_string(in[6]));
}

AdamAttrs adam_attrs(const Attrs& attrs) {
  return {attrs.f64("beta1"), attrs.f64("beta2"), attrs.f64("eps"), attrs.f64("weight_decay"),
          attrs.flag("decoupled")};
}

AdamScalars adam_scalars(const AdamAttrs& a, const KernelArgs& args) {
  const double clip = *args.in[4].as<float>(), lr = *args.in[5].as<float>();
  const double step = static_cast<double>(*args.in[6].as<int64_t>());
  const double correction1 = 1 - std::pow(a.beta1, step), correction2 = 1 - std::pow(a.beta2, step);
  return {.clip = static_cast<float>(clip),
          .coupled_decay = static_cast<float>(a.decoupled ? 0 : a.weight_decay),
          .one_minus_beta1 = static_cast<float>(1 - a.beta1),
          .beta2 = static_cast<float>(a.beta2),
          .one_minus_beta2 = static_cast<float>(1 - a.beta2),
          .keep = static_cast<float>(a.decoupled ? 1 - lr * a.weight_decay : 1),
          .step_size = static_cast<float>(lr / correction1),
          .inv_sqrt_correction2 = static_cast<float>(1 / std::sqrt(correction2)),
          .eps = static_cast<float>(a.eps)};
}

Sample adam_sample(ir::Shape shape, DType p, DType g, DType m) {
  // v starts well above 0: near it the update is a quotient of roundings.
  return {"",
          {{{p, shape}},
           {{g, shape}},
           {{m, shape}, -0.1, 0.1},
           {{m, shape}, 0.05, 0.2},
           {{DType::f32, {}}, 0, 0, {0.5}},
           {{DType::f32, {}}, 0, 0, {0.01}},
           {{DType::i64, {}}, 0, 0, {3}}},
          {},
          1,
          false};  // an update has no gradient
}

std::vector<ir::AttrSpec> adam_attr_specs() {
  return {{"beta1", AttrKind::f64, ir::Attr{0.9}},
          {"beta2", AttrKind::f64, ir::Attr{0.95}},
          {"eps", AttrKind::f64, ir::Attr{1e-8}},
          {"weight_decay", AttrKind::f64, ir::Attr{0.1}},
          {"decoupled", AttrKind::i64, ir::Attr{int64_t{1}}}};
}

void adam_reference(const ir::ReferenceArgs& args) {
  const AdamAttrs a = adam_attrs(args.attrs);
  const double clip = args.in[4][0], lr = args.in[5][0], step = args.in[6][0];
  for (size_t i = 0; i < args.in[0].size(); ++i) {
    double p = args.in[0][i];
    double g = args.in[1][i] * clip;
    if (a.decoupled)
      p -= lr * a.weight_decay * p;
    else
      g += a.weight_decay * p;
    const double m = args.in[2][i] + (1 - a.beta1) * (g - args.in[2][i]);  // torch.lerp
    const double v = a.beta2 * args.in[3][i] + (1 - a.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(a.beta1, step)),
                 v_hat = v / (1 - std::pow(a.beta2, step));
    args.out[0][i] = p - lr * m_hat / (std::sqrt(v_hat) + a.eps);
    args.out[1][i] = m;
    args.out[2][i] = v;
  }
}

ir::Cost adam_cost(const OpInstance& node) {
  ir::Cost cost{14.0 * static_cast<double>(num_elements(node.in[0].shape)), 0};
  for (const Type& type : node.in) cost.bytes += static_cast<double>(byte_size(type));
  for (const Type& type : node.out) cost.bytes += static_cast<double>(byte_size(type));
  return cost;
}

std::string adam_shard(const OpInstance& node) {
  std::string dims;
  for (int64_t i = 0; i < node.in[0].rank(); ++i) dims += static_cast<char>('a' + i);
  return dims + "," + dims + "," + dims + "," + dims + ",,,->" + dims + "," + dims + "," + dims;
}

const OpDef kAdam{
    .name = "adam",
    .attrs = adam_attr_specs(),
    .infer = infer,
    .shard = adam_shard,
    .cpu = kernels_per_isa("one_pass", plan),
    .cost = adam_cost,
    .samples = samples,
    .reference = adam_reference,
};

}  // namespace rhea::ops
