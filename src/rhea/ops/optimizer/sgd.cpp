// Row of sgd: torch.optim.SGD with momentum, dampening, Nesterov and coupled weight decay, one pass
// over memory.
#include <algorithm>
#include <cmath>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/optimizer/kernels.h"
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
  if (in.size() != 6) throw Error("takes p, g, buf, clip, lr, step; got {} operands", in.size());
  const bool no_buffer = attrs.f64("momentum") == 0 && num_elements(in[2].shape) == 0;
  for (size_t i = 0; i < 3; ++i) {
    const bool shape_ok = in[i].shape == in[0].shape || (i == 2 && no_buffer);
    if (!shape_ok || (in[i].dtype != DType::f32 && in[i].dtype != DType::bf16))
      throw Error(
          "p, g and buf must have one shape (buf may be empty when momentum is 0) and be f32 or "
          "bf16, got {}, {}, {}",
          to_string(in[0]), to_string(in[1]), to_string(in[2]));
  }
  const Type number{DType::f32, {}}, step{DType::i64, {}};
  if (in[3] != number || in[4] != number || in[5] != step)
    throw Error("clip and lr must be f32[], step i64[], got {}, {}, {}", to_string(in[3]),
                to_string(in[4]), to_string(in[5]));
  return {in[0], in[2]};
}

constexpr int64_t kBlock = 1 << 15;

struct State {
  double momentum, dampening, weight_decay;
  bool nesterov, has_buffer;
  SgdFn sgd;
  int64_t count;
};

void run(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  const bool first = *args.in[5].as<int64_t>() <= 1;
  const SgdScalars scalars{
      .clip = *args.in[3].as<float>(),
      .lr = *args.in[4].as<float>(),
      .momentum = static_cast<float>(first ? 0 : s.momentum),
      .nesterov_momentum = static_cast<float>(s.momentum),
      .gain = static_cast<float>(first || s.momentum == 0 ? 1 : 1 - s.dampening),
      .weight_decay = static_cast<float>(s.weight_decay),
      .nesterov = s.nesterov,
      .has_buffer = s.has_buffer};
  const SgdPointers at{args.in[0].data, args.in[1].data, args.in[2].data, args.out[0].data,
                       args.out[1].data};
  const int64_t begin = args.begin * kBlock;
  s.sgd(at, begin, std::min(args.end * kBlock, s.count) - begin, scalars);
}

KernelPlan plan(const OpInstance& node, Isa isa) {
  auto state = std::make_shared<State>();
  state->momentum = node.attrs->f64("momentum");
  state->dampening = node.attrs->f64("dampening");
  state->weight_decay = node.attrs->f64("weight_decay");
  state->nesterov = node.attrs->flag("nesterov");
  state->count = num_elements(node.in[0].shape);
  state->has_buffer = num_elements(node.in[2].shape) == state->count;
  state->sgd = optimizer_kernels(isa).sgd[optimizer_dtype(node.in[0].dtype)][optimizer_dtype(
      node.in[1].dtype)][optimizer_dtype(node.in[2].dtype)];
  KernelPlan plan;
  plan.grid = {div_up(state->count, kBlock)};
  plan.state = std::move(state);
  plan.run = run;
  plan.in_place = {{0, 0}, {2, 1}};
  return plan;
}

Sample sample(std::string name, DType t, double momentum, double dampening, bool nesterov,
              double step) {
  const ir::Shape shape = {5, 7};
  return {std::move(name),
          {{{t, shape}},
           {{t, shape}},
           {{t, shape}},
           {{DType::f32, {}}, 0, 0, {0.5}},
           {{DType::f32, {}}, 0, 0, {0.1}},
           {{DType::i64, {}}, 0, 0, {step}}},
          {{"momentum", momentum},
           {"dampening", dampening},
           {"nesterov", int64_t{nesterov}},
           {"weight_decay", 0.1}},
          1,
          false};  // an update has no gradient
}

std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const DType t : {DType::f32, DType::bf16}) {
    const std::string name(dtype_name(t));
    all.push_back(sample("plain_" + name, t, 0, 0, false, 3));
    all.push_back(sample("momentum_" + name, t, 0.9, 0.1, false, 3));
    all.push_back(sample("momentum_first_" + name, t, 0.9, 0.1, false, 1));
    all.push_back(sample("nesterov_" + name, t, 0.9, 0, true, 3));
  }
  Sample no_buffer = sample("no_buffer", DType::f32, 0, 0, false, 3);
  no_buffer.inputs[2].type.shape = {0};
  all.push_back(std::move(no_buffer));
  return all;
}

void reference(const ir::ReferenceArgs& args) {
  const double momentum = args.attrs.f64("momentum"), dampening = args.attrs.f64("dampening");
  const double clip = args.in[3][0], lr = args.in[4][0];
  const bool has_buffer = args.in[2].size() == args.in[0].size();
  for (size_t i = 0; i < args.in[0].size(); ++i) {
    const double p = args.in[0][i];
    const double g = args.in[1][i] * clip + args.attrs.f64("weight_decay") * p;
    double buffer = g;
    if (momentum != 0 && args.in[5][0] > 1) buffer = momentum * args.in[2][i] + (1 - dampening) * g;
    args.out[0][i] = p - lr * (args.attrs.flag("nesterov") ? g + momentum * buffer : buffer);
    if (has_buffer) args.out[1][i] = buffer;
  }
}

}  // namespace

const OpDef kSgd{
    .name = "sgd",
    .attrs = {{"momentum", AttrKind::f64, ir::Attr{0.0}},
              {"dampening", AttrKind::f64, ir::Attr{0.0}},
              {"nesterov", AttrKind::i64, ir::Attr{int64_t{0}}},
              {"weight_decay", AttrKind::f64, ir::Attr{0.0}}},
    .infer = infer,
    .shard =
        [](const OpInstance& node) {
          std::string dims;
          for (int64_t i = 0; i < node.in[0].rank(); ++i) dims += static_cast<char>('a' + i);
          const std::string buffer = node.in[2].shape == node.in[0].shape ? dims : "1";
          return dims + "," + dims + "," + buffer + ",,,->" + dims + "," + buffer;
        },
    .cpu = kernels_per_isa("one_pass", plan),
    .cost =
        [](const OpInstance& node) {
          ir::Cost cost{8.0 * static_cast<double>(num_elements(node.in[0].shape)), 0};
          for (const Type& type : node.in) cost.bytes += static_cast<double>(byte_size(type));
          for (const Type& type : node.out) cost.bytes += static_cast<double>(byte_size(type));
          return cost;
        },
    .samples = samples,
    .reference = reference,
};

}  // namespace rhea::ops
