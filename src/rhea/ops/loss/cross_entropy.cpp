// Rows of cross_entropy and its gradient on finished logits.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rhea/base/error.h"
#include "rhea/ops/loss/loss.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

using ir::Attrs;
using ir::num_elements;
using ir::OpInstance;
using ir::Sample;
using ir::Type;

void check_operands(std::span<const Type> in, size_t count) {
  if (in.size() != count) throw Error("takes {} operands, got {}", count, in.size());
  if (in[0].rank() != 2 || !is_float(in[0].dtype) || in[1] != Type{DType::i32, {in[0].shape[0]}})
    throw Error("needs float logits [T,V] and labels i32[T], got {} and {}", to_string(in[0]),
                to_string(in[1]));
  for (size_t i = 2; i < count; ++i) {
    if (in[i] != Type{DType::f32, {}})
      throw Error("operand {} must be f32[], got {}", i, to_string(in[i]));
  }
}

std::vector<Value> vjp(const ir::VjpArgs& args) {
  const Value dloss = args.cotangents[0];
  if (!dloss.valid()) return {Value{}, Value{}, Value{}};
  const Value logits = args.inputs[0], labels = args.inputs[1], scale = args.inputs[2];
  const Value dlogits = args.graph.add1(kCrossEntropyGrad, {logits, labels, scale, dloss});
  // The loss is linear in the scale: its derivative is the loss at scale 1.
  return {dlogits, Value{}, cross_entropy(logits, labels, dloss)};
}

std::vector<Sample> samples(size_t operands) {
  std::vector<Sample> all;
  for (const DType t : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    Sample s{"small_" + std::string(dtype_name(t)),
             {{{t, {4, 5}}, -3, 3},
              {{DType::i32, {4}}, 0, 0, {4, -100, 0, 2}},
              {{DType::f32, {}}, 0, 0, {0.25}}},
             {}};
    if (operands == 4) s.inputs.push_back({{DType::f32, {}}, 0, 0, {1.5}});
    s.check_vjp = operands == 3;
    all.push_back(s);
    Sample wide = s;
    wide.name = "wide_" + std::string(dtype_name(t));
    wide.inputs[0] = {{t, {70, 333}}, -8, 8};
    wide.inputs[1] = {{DType::i32, {70}}, 0, 332};
    wide.check_vjp = false;  // large
    all.push_back(wide);
  }
  Sample ignored = all[0];
  ignored.name = "nothing_valid";
  ignored.inputs[1].values = {-100, -100, -100, -100};
  all.push_back(ignored);
  Sample empty = all[0];
  empty.name = "no_tokens";
  empty.inputs[0].type.shape = {0, 5};
  empty.inputs[1] = {{DType::i32, {0}}};
  all.push_back(empty);
  Sample huge = all[0];
  huge.name = "huge_logits";
  huge.inputs[0].low = -1e4;
  huge.inputs[0].high = 1e4;
  huge.check_vjp = false;  // a step function at this size
  all.push_back(huge);
  return all;
}

ir::Cost cost(const OpInstance& node) {
  ir::Cost cost{6.0 * static_cast<double>(num_elements(node.in[0].shape)), 0};
  for (const Type& type : node.in) cost.bytes += static_cast<double>(byte_size(type));
  for (const Type& type : node.out) cost.bytes += static_cast<double>(byte_size(type));
  return cost;
}

std::span<const double> logits_of(const ir::ReferenceArgs& args, size_t token) {
  const auto vocabulary = static_cast<size_t>(args.in_types[0].shape[1]);
  return std::span(args.in[0]).subspan(token * vocabulary, vocabulary);
}

}  // namespace

double token_loss_f64(std::span<const double> logits, double label, double factor,
                      double* dlogits) {
  const auto place = static_cast<int64_t>(label);
  if (place == kIgnoredLabel) {
    if (dlogits != nullptr) std::fill_n(dlogits, logits.size(), 0.0);
    return 0;
  }
  // NaN in a row must reach the result: a maximum would hide it, the sum does not.
  double max = -std::numeric_limits<double>::infinity();
  for (const double x : logits) max = std::max(max, x);
  double total = 0;
  for (const double x : logits) total += std::exp(x - max);
  const double loss = max + std::log(total) - logits[static_cast<size_t>(place)];
  if (dlogits == nullptr) return loss;
  for (size_t v = 0; v < logits.size(); ++v) {
    const double p = std::exp(logits[v] - max) / total;
    dlogits[v] = factor * (p - (static_cast<int64_t>(v) == place ? 1 : 0));
  }
  return loss;
}

const OpDef kCrossEntropy{
    .name = "cross_entropy",
    .infer =
        [](std::span<const Type> in, const Attrs&) {
          check_operands(in, 3);
          return std::vector<Type>{{DType::f32, {}}};
        },
    .vjp = vjp,
    .shard = [](const OpInstance&) { return std::string("t!v,t,->"); },
    .cpu = cross_entropy_kernels(),
    .cost = cost,
    .samples = [] { return samples(3); },
    .reference =
        [](const ir::ReferenceArgs& args) {
          double sum = 0;
          for (size_t t = 0; t < args.in[1].size(); ++t)
            sum += token_loss_f64(logits_of(args, t), args.in[1][t], 0, nullptr);
          args.out[0][0] = args.in[2][0] * sum;
        },
};

const OpDef kCrossEntropyGrad{
    .name = "cross_entropy_grad",
    .infer =
        [](std::span<const Type> in, const Attrs&) {
          check_operands(in, 4);
          return std::vector<Type>{in[0]};
        },
    .shard = [](const OpInstance&) { return std::string("t!v,t,,->tv"); },
    .cpu = cross_entropy_grad_kernels(),
    .cost = cost,
    .samples = [] { return samples(4); },
    .reference =
        [](const ir::ReferenceArgs& args) {
          const double factor = args.in[3][0] * args.in[2][0];
          for (size_t t = 0; t < args.in[1].size(); ++t) {
            const std::span logits = logits_of(args, t);
            token_loss_f64(logits, args.in[1][t], factor, args.out[0].data() + t * logits.size());
          }
        },
};

Value cross_entropy(Value logits_TV, Value labels_T, Value scale, Where where) {
  return logits_TV.graph->add1(kCrossEntropy, {logits_TV, labels_T, scale}, {}, where);
}

}  // namespace rhea::ops
