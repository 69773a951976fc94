// Causal attention and its gradient: types, costs, gradient rule. The formulas are in
// attention_reference.cpp, kernels in the files beside.
#include "rhea/ops/attention/attention.h"

#include "rhea/ops/attention/attention_kernels.h"
#include "rhea/ops/attention/attention_shape.h"
#include "rhea/ops/element.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::OpInstance;
using ir::Type;

std::vector<ir::AttrSpec> attr_specs(bool grad) {
  std::vector<ir::AttrSpec> specs = {
      {"scale", AttrKind::f64, {}},
      {"seq_len", AttrKind::i64, {}},
      {"window", AttrKind::i64, ir::Attr{int64_t{0}}},
      {"softcap", AttrKind::f64, ir::Attr{0.0}},
      {"documents", AttrKind::i64, ir::Attr{int64_t{1}}},
      {"has_sink", AttrKind::i64, ir::Attr{int64_t{0}}},
      {"has_bias", AttrKind::i64, ir::Attr{int64_t{0}}},
  };
  if (grad) specs.push_back({"has_lse_grad", AttrKind::i64, ir::Attr{int64_t{0}}});
  return specs;
}

void expect(const char* name, const Type& got, const Type& wanted) {
  if (got != wanted) throw Error("{} must be {}, got {}", name, to_string(wanted), to_string(got));
}

struct Sizes {
  Type o, lse;
};

Sizes check_operands(std::span<const Type> in, const ir::Attrs& attrs, bool grad) {
  const AttentionOperands at(attrs, grad);
  if (static_cast<int>(in.size()) != at.count)
    throw Error("takes {} operands, got {}", at.count, in.size());
  const Type &q = in[0], &k = in[1], &v = in[2];
  for (const Type& type : in.first(3))
    if (!is_float(type.dtype) || type.dtype != q.dtype || type.rank() != 3)
      throw Error(
          "q, k, v must be [tokens, heads, width] of one floating point type, got {}, {}, {}",
          to_string(q), to_string(k), to_string(v));
  const int64_t tokens = q.shape[0], heads = q.shape[1], kv_heads = k.shape[1];
  if (k.shape[0] != tokens || v.shape[0] != tokens || v.shape[1] != kv_heads ||
      k.shape[2] != q.shape[2])
    throw Error("q {}, k {} and v {} do not fit together", to_string(q), to_string(k),
                to_string(v));
  if (kv_heads == 0 ? heads != 0 : heads % kv_heads != 0)
    throw Error("{} query heads are not a multiple of {} kv heads", heads, kv_heads);
  const int64_t row = attrs.i64("seq_len");
  if (row <= 0 ? tokens != 0 || row < 0 : tokens % row != 0)
    throw Error("{} tokens are not whole rows of seq_len {}", tokens, row);
  if (attrs.i64("window") < 0 || attrs.f64("softcap") < 0)
    throw Error("window {} and softcap {} must not be negative (0 = none)", attrs.i64("window"),
                attrs.f64("softcap"));
  expect("positions", in[3], {DType::i32, {tokens}});
  if (at.sink >= 0) check_sink(in[static_cast<size_t>(at.sink)], q);
  if (at.bias >= 0) check_bias(in[static_cast<size_t>(at.bias)], q, row);
  const Sizes sizes{{q.dtype, {tokens, heads, v.shape[2]}},
                    {accum_dtype(q.dtype), {tokens, heads}}};
  if (grad) {
    expect("o", in[static_cast<size_t>(at.o)], sizes.o);
    expect("lse", in[static_cast<size_t>(at.lse)], sizes.lse);
    expect("do", in[static_cast<size_t>(at.d_o)], sizes.o);
    if (at.d_lse >= 0) expect("dlse", in[static_cast<size_t>(at.d_lse)], sizes.lse);
  }
  return sizes;
}

std::vector<Value> vjp(const ir::VjpArgs& args) {
  const Value o = args.outputs[0], lse = args.outputs[1];
  std::vector<Value> in(args.inputs.begin(), args.inputs.end());
  in.push_back(o);
  in.push_back(lse);
  in.push_back(args.cotangents[0].valid() ? args.cotangents[0] : args.graph.constant(0, o.type()));
  ir::Attrs attrs = args.attrs;
  if (args.cotangents[1].valid()) {
    in.push_back(args.cotangents[1]);
    attrs.set("has_lse_grad", int64_t{1});
  }
  std::vector<Value> grads = args.graph.add(kAttentionGrad, in, attrs);
  grads.insert(grads.begin() + 3, Value{});          // positions
  if (attrs.flag("has_bias")) grads.emplace_back();  // a table of constants
  return grads;
}

// Heads are split together over q, k and v; a query head and its kv head stay on one side because
// both are cut evenly. Tokens see each other, so they stay whole.
std::string shard(const OpInstance& op, bool grad) {
  const AttentionOperands at(*op.attrs, grad);
  std::string in = "!tn!h,!tn!h,!tn!v,!t", out = grad ? "!tn!h,!tn!h,!tn!v" : "!tn!v,!tn";
  if (at.sink >= 0) in += ",n";
  if (at.bias >= 0) in += ",n!p";
  if (grad) in += ",!tn!v,!tn,!tn!v";
  if (at.d_lse >= 0) in += ",!tn";
  if (grad && at.sink >= 0) out += ",n";
  return in + "->" + out;
}

double bytes(const OpInstance& op) {
  double sum = 0;
  for (const Type& type : op.in) sum += static_cast<double>(ir::byte_size(type));
  for (const Type& type : op.out) sum += static_cast<double>(ir::byte_size(type));
  return sum;
}

// Products of the size of the visible score matrix: forward s and o; backward s, dk, dq over H and
// dp, dv over V.
ir::Cost cost(const OpInstance& op, bool grad) {
  const AttentionShape s = AttentionShape::of(op);
  const double pairs = s.visible_pairs() * static_cast<double>(s.query_heads);
  const double h = static_cast<double>(s.width), v = static_cast<double>(s.value_width);
  return {2 * pairs * (grad ? 3 * h + 2 * v : h + v), bytes(op)};
}

}  // namespace

const OpDef kAttention{
    .name = "attention",
    .attrs = attr_specs(false),
    .infer =
        [](std::span<const Type> in, const ir::Attrs& attrs) {
          const Sizes sizes = check_operands(in, attrs, false);
          return std::vector<Type>{sizes.o, sizes.lse};
        },
    .vjp = vjp,
    .shard = [](const OpInstance& op) { return shard(op, false); },
    .cpu = attention_kernels(),
    .cost = [](const OpInstance& op) { return cost(op, false); },
    .samples = [] { return attention_samples(false); },
    .reference = attention_reference,
};

const OpDef kAttentionGrad{
    .name = "attention_grad",
    .attrs = attr_specs(true),
    .infer =
        [](std::span<const Type> in, const ir::Attrs& attrs) {
          check_operands(in, attrs, true);
          std::vector<Type> out(in.begin(), in.begin() + 3);
          if (attrs.flag("has_sink")) out.push_back({accum_dtype(in[0].dtype), {in[0].shape[1]}});
          return out;
        },
    .shard = [](const OpInstance& op) { return shard(op, true); },
    .cpu = attention_grad_kernels(),
    .cost = [](const OpInstance& op) { return cost(op, true); },
    .samples = [] { return attention_samples(true); },
    .reference = attention_grad_reference,
};

Value attention(Value q_TNH, Value k_TKH, Value v_TKV, Value positions_T,
                const AttentionOptions& options, std::optional<Value> sink_N,
                std::optional<Value> bias_NP, Where where) {
  std::vector<Value> in = {q_TNH, k_TKH, v_TKV, positions_T};
  if (sink_N) in.push_back(*sink_N);
  if (bias_NP) in.push_back(*bias_NP);
  return q_TNH.graph->add(kAttention, in,
                          {{"scale", options.scale},
                           {"seq_len", options.seq_len},
                           {"window", options.window},
                           {"softcap", options.softcap},
                           {"documents", int64_t{options.documents}},
                           {"has_sink", int64_t{sink_N.has_value()}},
                           {"has_bias", int64_t{bias_NP.has_value()}}},
                          where)[0];
}

}  // namespace rhea::ops
