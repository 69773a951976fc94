// Rows of linear_cross_entropy and its gradient: the head's product inside the loss, so that no
// [T,V] buffer of logits exists.
#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/ops/loss/loss.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::Attrs;
using ir::OpInstance;
using ir::Sample;
using ir::Type;

void check_operands(std::span<const Type> in, size_t count, const Attrs& attrs) {
  if (in.size() != count) throw Error("takes {} operands, got {}", count, in.size());
  const bool shapes = in[0].rank() == 2 && in[1].rank() == 2 && in[0].shape[1] == in[1].shape[1];
  if (!shapes || !is_float(in[0].dtype) || in[0].dtype != in[1].dtype ||
      in[2] != Type{DType::i32, {in[0].shape[0]}})
    throw Error("needs h [T,D] and w [V,D] of one float dtype and labels i32[T], got {}, {}, {}",
                to_string(in[0]), to_string(in[1]), to_string(in[2]));
  for (size_t i = 3; i < count; ++i) {
    if (in[i] != Type{DType::f32, {}})
      throw Error("operand {} must be f32[], got {}", i, to_string(in[i]));
  }
  if (attrs.i64("num_chunks") < 1)
    throw Error("num_chunks must be at least 1, got {}", attrs.i64("num_chunks"));
}

std::vector<Value> vjp(const ir::VjpArgs& args) {
  const Value dloss = args.cotangents[0];
  if (!dloss.valid()) return std::vector<Value>(4);
  const Value h = args.inputs[0], w = args.inputs[1], labels = args.inputs[2],
              scale = args.inputs[3];
  const Value operands[] = {h, w, labels, scale, dloss};
  const auto grads = args.graph.add(kLinearCrossEntropyGrad, operands, args.attrs);
  // The loss is linear in the scale: its derivative is the loss at scale 1.
  const Value dscale = linear_cross_entropy(h, w, labels, dloss, args.attrs.i64("num_chunks"));
  return {grads[1], grads[2], Value{}, dscale};
}

// Products: forward 2 T V D; with gradients three times that.
ir::Cost cost(const OpInstance& node) {
  const double products = node.out.size() == 1 ? 2.0 : 6.0;
  const double t = static_cast<double>(node.in[0].shape[0]),
               d = static_cast<double>(node.in[0].shape[1]);
  const double v = static_cast<double>(node.in[1].shape[0]);
  ir::Cost cost{products * t * v * d + 6.0 * t * v, 0};
  for (const Type& type : node.in) cost.bytes += static_cast<double>(byte_size(type));
  for (const Type& type : node.out) cost.bytes += static_cast<double>(byte_size(type));
  return cost;
}

std::vector<Sample> samples(size_t operands) {
  std::vector<Sample> all;
  const auto make = [&](std::string name, DType t, int64_t tokens, int64_t vocabulary,
                        int64_t width, int64_t chunks) {
    Sample s{std::move(name),
             {{{t, {tokens, width}}, -1, 1},
              {{t, {vocabulary, width}}, -1, 1},
              {{DType::i32, {tokens}}, 0, static_cast<double>(vocabulary - 1)},
              {{DType::f32, {}}, 0, 0, {0.25}}},
             {{"num_chunks", chunks}}};
    if (operands == 5) s.inputs.push_back({{DType::f32, {}}, 0, 0, {1.5}});
    s.check_vjp = operands == 4 && tokens * vocabulary < 100;
    return s;
  };
  for (const DType t : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    const std::string name(dtype_name(t));
    Sample small = make("small_" + name, t, 5, 7, 3, 2);
    small.inputs[2].values = {6, -100, 0, 2, 3};
    all.push_back(small);
    all.push_back(make("chunks_" + name, t, 37, 50, 24, 8));
  }
  for (const DType t : {DType::f32, DType::bf16}) {
    const std::string name(dtype_name(t));
    // Sizes around the blocks of the fused kernels: chunks of tokens, blocks of words, odd counts.
    all.push_back(make("blocks_" + name, t, 96, 600, 64, 1));
    all.push_back(make("tails_" + name, t, 101, 517, 77, 3));
    // Three chunks of the fused kernels, two tokens in the last one.
    all.push_back(make("short_last_chunk_" + name, t, 130, 300, 40, 40));
  }
  Sample ignored = make("nothing_valid", DType::f32, 5, 7, 3, 2);
  ignored.inputs[2].values = {-100, -100, -100, -100, -100};
  all.push_back(ignored);
  all.push_back(make("no_tokens", DType::f32, 0, 7, 3, 2));
  return all;
}

void reference(const ir::ReferenceArgs& args, bool with_grads) {
  const int64_t tokens = args.in_types[0].shape[0], width = args.in_types[0].shape[1],
                vocabulary = args.in_types[1].shape[0];
  const auto& h = args.in[0];
  const auto& w = args.in[1];
  const auto at = [](int64_t row, int64_t columns, int64_t column) {
    return static_cast<size_t>(row * columns + column);
  };
  std::vector<double> logits(static_cast<size_t>(tokens * vocabulary)), dlogits(logits.size());
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t v = 0; v < vocabulary; ++v) {
      for (int64_t d = 0; d < width; ++d)
        logits[at(t, vocabulary, v)] += h[at(t, width, d)] * w[at(v, width, d)];
    }
  }
  args.out[0][0] =
      cross_entropy_f64(logits, args.in[2], vocabulary, args.in[3][0],
                        with_grads ? args.in[4][0] : 0, with_grads ? &dlogits : nullptr);
  if (!with_grads) return;
  std::fill(args.out[1].begin(), args.out[1].end(), 0.0);
  std::fill(args.out[2].begin(), args.out[2].end(), 0.0);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t v = 0; v < vocabulary; ++v) {
      const double g = dlogits[at(t, vocabulary, v)];
      for (int64_t d = 0; d < width; ++d) {
        args.out[1][at(t, width, d)] += g * w[at(v, width, d)];
        args.out[2][at(v, width, d)] += g * h[at(t, width, d)];
      }
    }
  }
}

}  // namespace

int64_t tokens_per_chunk(int64_t tokens, int64_t num_chunks) {
  return std::max<int64_t>(1, div_up(tokens, std::min(num_chunks, std::max<int64_t>(1, tokens))));
}

const OpDef kLinearCrossEntropy{
    .name = "linear_cross_entropy",
    .attrs = {{"num_chunks", AttrKind::i64, {}}},
    .infer =
        [](std::span<const Type> in, const Attrs& attrs) {
          check_operands(in, 4, attrs);
          return std::vector<Type>{{DType::f32, {}}};
        },
    .vjp = vjp,
    .shard = [](const OpInstance&) { return std::string("t!d,!v!d,t,->"); },
    .cpu = linear_cross_entropy_kernels(),
    .cost = cost,
    .samples = [] { return samples(4); },
    .reference = [](const ir::ReferenceArgs& args) { reference(args, false); },
};

const OpDef kLinearCrossEntropyGrad{
    .name = "linear_cross_entropy_grad",
    .attrs = {{"num_chunks", AttrKind::i64, {}}},
    .infer =
        [](std::span<const Type> in, const Attrs& attrs) {
          check_operands(in, 5, attrs);
          const DType wide = in[1].dtype == DType::f64 ? DType::f64 : DType::f32;
          return std::vector<Type>{{DType::f32, {}}, in[0], {wide, in[1].shape}};
        },
    .shard = [](const OpInstance&) { return std::string("t!d,!v!d,t,,->,t!d,!v!d"); },
    .cpu = linear_cross_entropy_grad_kernels(),
    .cost = cost,
    .samples = [] { return samples(5); },
    .reference = [](const ir::ReferenceArgs& args) { reference(args, true); },
};

Value linear_cross_entropy(Value h_TD, Value w_VD, Value labels_T, Value scale, int64_t num_chunks,
                           Where where) {
  return h_TD.graph->add1(kLinearCrossEntropy, {h_TD, w_VD, labels_T, scale},
                          {{"num_chunks", num_chunks}}, where);
}

}  // namespace rhea::ops
