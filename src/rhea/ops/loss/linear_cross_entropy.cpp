// Rows of linear_cross_entropy and its gradient: the head's product inside the loss, so that no
// [T,V] buffer of logits exists.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rhea/base/error.h"
#include "rhea/ops/element.h"
#include "rhea/ops/f64_product.h"
#include "rhea/ops/loss/loss.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::Attrs;
using ir::OpInstance;
using ir::Sample;
using ir::Type;

// `count`: without a bias.
void check_operands(std::span<const Type> in, size_t count, const Attrs& attrs) {
  if (in.size() != count && in.size() != count + 1)
    throw Error("takes {} operands, or {} with a bias, got {}", count, count + 1, in.size());
  const bool shapes = in[0].rank() == 2 && in[1].rank() == 2 && in[0].shape[1] == in[1].shape[1];
  if (!shapes || !is_float(in[0].dtype) || in[0].dtype != in[1].dtype ||
      in[2] != Type{DType::i32, {in[0].shape[0]}})
    throw Error("needs h [T,D] and w [V,D] of one float dtype and labels i32[T], got {}, {}, {}",
                to_string(in[0]), to_string(in[1]), to_string(in[2]));
  for (size_t i = 3; i < in.size(); ++i) {
    const bool is_bias = i == kHeadBias && in.size() > count;
    const Type wanted =
        is_bias ? Type{accum_dtype(in[0].dtype), {in[1].shape[0]}} : Type{DType::f32, {}};
    if (in[i] != wanted)
      throw Error("{} must be {}, got {}", is_bias ? "the bias" : fmt::format("operand {}", i),
                  to_string(wanted), to_string(in[i]));
  }
  if (!(attrs.f64("cap") >= 0))
    throw Error("cap must not be negative (0 = none), got {}", attrs.f64("cap"));
  if (attrs.i64("num_chunks") < 1)
    throw Error("num_chunks must be at least 1, got {}", attrs.i64("num_chunks"));
}

std::vector<Value> vjp(const ir::VjpArgs& args) {
  const Value dloss = args.cotangents[0];
  if (!dloss.valid()) return std::vector<Value>(args.inputs.size());
  std::vector<Value> operands(args.inputs.begin(), args.inputs.end());
  operands.push_back(dloss);
  const auto grads = args.graph.add(kLinearCrossEntropyGrad, operands, args.attrs);
  // The loss is linear in the scale: its derivative is the loss at scale 1.
  operands.pop_back();
  operands[3] = dloss;
  const Value dscale = args.graph.add(kLinearCrossEntropy, operands, args.attrs)[0];
  std::vector<Value> cotangents = {grads[1], grads[2], Value{}, dscale};
  cotangents.insert(cotangents.end(), grads.begin() + 3, grads.end());
  return cotangents;
}

// Products: forward 2 T V D; with gradients three times that. A cap is a tanh and its slope.
ir::Cost cost(const OpInstance& node) {
  const double products = is_head_grad(node) ? 6.0 : 2.0;
  const double per_logit =
      6.0 + (has_head_bias(node) ? 2.0 : 0.0) + (node.attrs->f64("cap") > 0 ? 20.0 : 0.0);
  const double t = static_cast<double>(node.in[0].shape[0]),
               d = static_cast<double>(node.in[0].shape[1]);
  const double v = static_cast<double>(node.in[1].shape[0]);
  ir::Cost cost{products * t * v * d + per_logit * t * v, 0};
  for (const Type& type : node.in) cost.bytes += static_cast<double>(byte_size(type));
  for (const Type& type : node.out) cost.bytes += static_cast<double>(byte_size(type));
  return cost;
}

std::vector<Sample> samples(bool grad) {
  std::vector<Sample> all;
  const auto make = [&](std::string name, DType t, int64_t tokens, int64_t vocabulary,
                        int64_t width, int64_t chunks, bool bias = false, double cap = 0) {
    Sample s{std::move(name),
             {{{t, {tokens, width}}, -1, 1},
              {{t, {vocabulary, width}}, -1, 1},
              {{DType::i32, {tokens}}, 0, static_cast<double>(vocabulary - 1)},
              {{DType::f32, {}}, 0, 0, {0.25}}},
             {{"num_chunks", chunks}, {"cap", cap}}};
    if (bias) s.inputs.push_back(uniform(accum_dtype(t), {vocabulary}));
    if (grad) s.inputs.push_back({{DType::f32, {}}, 0, 0, {1.5}});
    s.check_vjp = !grad && tokens * vocabulary < 100;
    return s;
  };
  for (const DType t : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const std::string name(dtype_name(t));
    Sample small = make("small_" + name, t, 5, 7, 3, 2);
    small.inputs[2].values = {6, -100, 0, 2, 3};
    all.push_back(small);
    all.push_back(make("chunks_" + name, t, 37, 50, 24, 8));
    // Caps that the logits reach: their slopes are far from 1.
    Sample both = make("bias_cap_" + name, t, 5, 7, 3, 2, true, 0.75);
    both.inputs[2].values = {6, -100, 0, 2, 3};
    all.push_back(both);
    all.push_back(make("bias_" + name, t, 6, 9, 3, 1, true));
    all.push_back(make("cap_" + name, t, 6, 9, 3, 2, false, 1.25));
  }
  for (const DType t : {DType::f32, DType::bf16}) {
    const std::string name(dtype_name(t));
    // Sizes around the blocks of the fused kernels: chunks of tokens, blocks of words, odd counts.
    all.push_back(make("blocks_" + name, t, 96, 600, 64, 1));
    all.push_back(make("tails_" + name, t, 101, 517, 77, 3));
    // Three chunks of the fused kernels, two tokens in the last one.
    all.push_back(make("short_last_chunk_" + name, t, 130, 300, 40, 40));
    all.push_back(make("bias_blocks_" + name, t, 130, 517, 40, 40, true));
    all.push_back(make("cap_blocks_" + name, t, 101, 517, 77, 3, false, 2));
    all.push_back(make("bias_cap_blocks_" + name, t, 130, 600, 64, 40, true, 3));
  }
  Sample ignored = make("nothing_valid", DType::f32, 5, 7, 3, 2);
  ignored.inputs[2].values = {-100, -100, -100, -100, -100};
  all.push_back(ignored);
  all.push_back(make("no_tokens", DType::f32, 0, 7, 3, 2));
  all.push_back(make("no_tokens_bias_cap", DType::f32, 0, 7, 3, 2, true, 5));
  return all;
}

std::vector<ir::AttrSpec> attr_specs() {
  return {{"num_chunks", AttrKind::i64, {}}, {"cap", AttrKind::f64, ir::Attr{0.0}}};
}

void reference(const ir::ReferenceArgs& args) { linear_cross_entropy_reference(args, in_order); }

}  // namespace

bool is_head_grad(const OpInstance& node) { return node.out.size() > 1; }
bool has_head_bias(const OpInstance& node) {
  return node.in.size() > (is_head_grad(node) ? 5U : 4U);
}

// Some tokens at a time: logits of all would need more memory than the model.
void linear_cross_entropy_reference(const ir::ReferenceArgs& args, const ForEach& for_each) {
  constexpr int64_t kTokens = 64;
  const bool with_grads = args.out.size() > 1;
  const bool has_bias = args.in.size() > (with_grads ? 5U : 4U);
  const double cap = args.attrs.f64("cap"), scale = args.in[3][0];
  const double factor = with_grads ? args.in.back()[0] * scale : 0;
  const int64_t tokens = args.in_types[0].shape[0], width = args.in_types[0].shape[1],
                vocabulary = args.in_types[1].shape[0];
  for (auto& out : args.out) std::fill(out.begin(), out.end(), 0.0);
  const F64Matrix w = row_major(args.in[1].data(), width);
  std::vector<double> logits, dlogits, losses;
  // Once without any tokens: the sum of none is scaled, too.
  for (int64_t first = 0; first == 0 || first < tokens; first += kTokens) {
    const int64_t count = std::min(kTokens, tokens - first);
    const F64Matrix h = row_major(args.in[0].data() + first * width, width);
    logits.assign(static_cast<size_t>(count * vocabulary), 0);
    dlogits.resize(with_grads ? logits.size() : 0);
    losses.resize(static_cast<size_t>(count));
    add_f64_product(count, vocabulary, width, h, w.transposed(), logits.data(), for_each);
    for_each(count, [&](int64_t t) {
      const std::span row(logits.data() + t * vocabulary, static_cast<size_t>(vocabulary));
      double* grad = with_grads ? dlogits.data() + t * vocabulary : nullptr;
      for (size_t v = 0; v < row.size(); ++v) {
        if (has_bias) row[v] += args.in[kHeadBias][v];
        if (cap > 0) row[v] = cap * std::tanh(row[v] / cap);
      }
      losses[static_cast<size_t>(t)] =
          token_loss_f64(row, args.in[2][static_cast<size_t>(first + t)], factor, grad);
      if (grad == nullptr || cap == 0) return;
      for (size_t v = 0; v < row.size(); ++v) {
        if (grad[v] == 0) continue;  // of a token without a label, whatever its logits are
        const double tanh = row[v] / cap;
        grad[v] *= 1 - tanh * tanh;
      }
    });
    // In the order of the tokens, whoever computed them.
    args.out[0][0] += scale * std::accumulate(losses.begin(), losses.end(), 0.0);
    if (!with_grads) continue;
    if (has_bias) {
      for (size_t i = 0; i < dlogits.size(); ++i)
        args.out[3][i % static_cast<size_t>(vocabulary)] += dlogits[i];
    }
    const F64Matrix g = row_major(dlogits.data(), vocabulary);
    add_f64_product(count, width, vocabulary, g, w, args.out[1].data() + first * width, for_each);
    add_f64_product(vocabulary, width, count, g.transposed(), h, args.out[2].data(), for_each);
  }
}

int64_t tokens_per_chunk(int64_t tokens, int64_t num_chunks) {
  return std::max<int64_t>(1, div_up(tokens, std::min(num_chunks, std::max<int64_t>(1, tokens))));
}

const OpDef kLinearCrossEntropy{
    .name = "linear_cross_entropy",
    .attrs = attr_specs(),
    .infer =
        [](std::span<const Type> in, const Attrs& attrs) {
          check_operands(in, 4, attrs);
          return std::vector<Type>{{DType::f32, {}}};
        },
    .vjp = vjp,
    .shard =
        [](const OpInstance& node) {
          return std::string(has_head_bias(node) ? "t!d,!v!d,t,,!v->" : "t!d,!v!d,t,->");
        },
    .cpu = linear_cross_entropy_kernels(),
    .cost = cost,
    .samples = [] { return samples(false); },
    .reference = reference,
};

const OpDef kLinearCrossEntropyGrad{
    .name = "linear_cross_entropy_grad",
    .attrs = attr_specs(),
    .infer =
        [](std::span<const Type> in, const Attrs& attrs) {
          check_operands(in, 5, attrs);
          std::vector<Type> out = {
              {DType::f32, {}}, in[0], {accum_dtype(in[1].dtype), in[1].shape}};
          if (in.size() > 5) out.push_back(in[kHeadBias]);
          return out;
        },
    .shard =
        [](const OpInstance& node) {
          return std::string(has_head_bias(node) ? "t!d,!v!d,t,,!v,->,t!d,!v!d,!v"
                                                 : "t!d,!v!d,t,,->,t!d,!v!d");
        },
    .cpu = linear_cross_entropy_grad_kernels(),
    .cost = cost,
    .samples = [] { return samples(true); },
    .reference = reference,
};

Value linear_cross_entropy(Value h_TD, Value w_VD, Value labels_T, Value scale, int64_t num_chunks,
                           std::optional<Value> bias_V, double cap, Where where) {
  std::vector<Value> in = {h_TD, w_VD, labels_T, scale};
  if (bias_V) in.push_back(*bias_V);
  return h_TD.graph->add(kLinearCrossEntropy, in, {{"num_chunks", num_chunks}, {"cap", cap}},
                         where)[0];
}

}  // namespace rhea::ops
