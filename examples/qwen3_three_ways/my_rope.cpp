// A rotary embedding that gathers nothing where it rotates.
//
// The stock op looks the row of the table up for each token by its position, in every layer, for
// queries and for keys. Here the rows are laid out in the order of the tokens once per step; layers
// share that table, and the op walks it beside x.
//
// T tokens, N heads, H head dim, P rotated pairs (i, i + P)
#include <algorithm>
#include <memory>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/config/derive.h"
#include "rhea/nn/modules.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"
#include "rhea/plugin/plugin.h"

namespace {

using namespace rhea;
using ir::Type;
using ir::Value;

std::vector<Type> infer(std::span<const Type> in, const ir::Attrs&) {
  ops::expect_operands(in, {"x", "cos", "sin"});
  const Type &x = in[0], &cos = in[1];
  ops::expect_float(x, "x");
  if (x.rank() != 3 || cos.rank() != 2 || cos != in[2] || cos.dtype != DType::f32 ||
      cos.shape[0] != x.shape[0] || 2 * cos.shape[1] > x.shape[2])
    throw Error("cos and sin must be f32 [T,P] for x [T,N,H] with 2 P <= H, got {}, {} and {}",
                to_string(cos), to_string(in[2]), to_string(x));
  return {x};
}

double direction(const ir::Attrs& attrs) { return attrs.flag("inverse") ? -1 : 1; }

// Plain and in f64: what the kernel is compared with.
void reference(const ir::ReferenceArgs& args) {
  const ir::Shape& shape = args.in_types[0].shape;
  const auto heads = static_cast<size_t>(shape[1]), width = static_cast<size_t>(shape[2]);
  const auto pairs = static_cast<size_t>(args.in_types[1].shape[1]);
  args.out[0] = args.in[0];
  for (size_t row = 0; row * width < args.in[0].size(); ++row) {
    for (size_t i = 0; i < pairs; ++i) {
      const size_t a = row * width + i, b = a + pairs, table = row / heads * pairs + i;
      const double cos = args.in[1][table], sin = direction(args.attrs) * args.in[2][table];
      args.out[0][a] = args.in[0][a] * cos - args.in[0][b] * sin;
      args.out[0][b] = args.in[0][a] * sin + args.in[0][b] * cos;
    }
  }
}

struct State {
  int64_t tokens, heads, width, pairs;
  float direction;
  DType dtype;
};

template <class T>
void rotate(const State& s, const ir::KernelArgs& args, int64_t t) {
  const float* cos = args.in[1].as<const float>() + t * s.pairs;
  const float* sin = args.in[2].as<const float>() + t * s.pairs;
  for (int64_t n = 0; n < s.heads; ++n) {
    const int64_t at = (t * s.heads + n) * s.width;
    const T* x = args.in[0].as<const T>() + at;
    T* y = args.out[0].as<T>() + at;
    for (int64_t i = 0; i < s.pairs; ++i) {
      const auto a = static_cast<float>(x[i]), b = static_cast<float>(x[i + s.pairs]);
      const float turn = s.direction * sin[i];
      y[i] = static_cast<T>(a * cos[i] - b * turn);
      y[i + s.pairs] = static_cast<T>(a * turn + b * cos[i]);
    }
    std::copy(x + 2 * s.pairs, x + s.width, y + 2 * s.pairs);
  }
}

constexpr int64_t kTokensOfAnItem = 16;

void run(const ir::KernelArgs& args) {
  const State& s = *static_cast<const State*>(args.state);
  const int64_t end = std::min(s.tokens, args.end * kTokensOfAnItem);
  for (int64_t t = args.begin * kTokensOfAnItem; t < end; ++t)
    s.dtype == DType::f32 ? rotate<float>(s, args, t) : rotate<bf16>(s, args, t);
}

ir::KernelPlan plan(const ir::OpInstance& op) {
  const ir::Shape& shape = op.in[0].shape;
  ir::KernelPlan plan;
  plan.grid = {div_up(shape[0], kTokensOfAnItem)};
  plan.state =
      std::make_shared<State>(State{shape[0], shape[1], shape[2], op.in[1].shape[1],
                                    static_cast<float>(direction(*op.attrs)), op.in[0].dtype});
  plan.run = run;
  plan.note = "16 tokens an item";
  return plan;
}

std::string accepts(const ir::OpInstance& op) {
  const DType dtype = op.in[0].dtype;
  return dtype == DType::f32 || dtype == DType::bf16 ? "" : "computes f32 and bf16 only";
}

std::vector<ir::Sample> samples() {
  const auto sample = [](std::string name, DType dtype, ir::Shape x, int64_t pairs,
                         int64_t inverse) {
    const ir::Shape table = {x[0], pairs};
    return ir::Sample{.name = std::move(name),
                      .inputs = {ops::uniform(dtype, std::move(x)), ops::uniform(DType::f32, table),
                                 ops::uniform(DType::f32, table)},
                      .attrs = {{"inverse", inverse}}};
  };
  return {sample("whole", DType::f32, {19, 3, 16}, 8, 0),
          sample("partial", DType::f32, {5, 2, 11}, 4, 0),
          sample("back", DType::f32, {7, 2, 16}, 8, 1),
          sample("bf16", DType::bf16, {9, 2, 16}, 8, 0)};
}

std::vector<Value> vjp(const ir::VjpArgs& args);

const ir::OpDef kRotate{
    .name = "example_rotate",
    .attrs = {{"inverse", ir::AttrKind::i64, ir::Attr{int64_t{0}}}},
    .infer = infer,
    .vjp = vjp,
    .shard = [](const ir::OpInstance&) { return std::string("tn!h,t!p,t!p->tn!h"); },
    .cpu = {{"beside_the_table", Isa::plain, accepts, plan}},
    .cost = ops::cost_per_element(3),
    .samples = samples,
    .reference = reference,
};

// The rotation back. What is saved for it is the table, a constant: it has no gradient.
std::vector<Value> vjp(const ir::VjpArgs& args) {
  ir::Attrs attrs = args.attrs;
  attrs.set("inverse", int64_t{args.attrs.flag("inverse") ? 0 : 1});
  return {args.graph.add1(kRotate, {args.cotangents[0], args.inputs[1], args.inputs[2]}, attrs),
          Value{}, Value{}};
}

struct GatherFreeRoPE {
  struct Config : nn::CosSinRoPE::Config {
    Value forward(nn::Trace& trace, Value x_TNH) const override {
      const auto tables = trace.rope_tables(spec());
      return x_TNH.graph->add1(kRotate, {x_TNH, ops::embedding(tables.cos_SP, trace.positions()),
                                         ops::embedding(tables.sin_SP, trace.positions())});
    }
  };
};

}  // namespace

RHEA_PLUGIN(p) {
  p.op(kRotate);
  p.override<nn::CosSinRoPE::Config>(
      "gather_free_rope", {.description = "rotary embedding on a table in the order of tokens"},
      [](const nn::CosSinRoPE::Config& stock) { return derive<GatherFreeRoPE::Config>(stock); });
}
