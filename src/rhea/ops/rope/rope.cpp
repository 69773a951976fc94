// Rotary position embedding: the pair (a, b) becomes (a cos - b sin, a sin + b cos).
#include "rhea/base/error.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/rope/rope_kernels.h"

namespace rhea::ops {
namespace {

using ir::OpInstance;
using ir::Type;

void check_operands(std::span<const Type> in) {
  if (in.size() != 4) throw Error("takes x, cos, sin, positions, got {} operands", in.size());
  const Type &x = in[0], &cos = in[1], &sin = in[2], &positions = in[3];
  if (!is_float(x.dtype) || x.rank() != 3)
    throw Error("x must be a floating point tensor [tokens, heads, head dim], got {}",
                to_string(x));
  if (cos != sin || cos.dtype != DType::f32 || cos.rank() != 2)
    throw Error("cos and sin must be f32 tables [positions, pairs] of one shape, got {} and {}",
                to_string(cos), to_string(sin));
  if (2 * cos.shape[1] > x.shape[2])
    throw Error("cos has {} pairs, more than half of the head dim {}", cos.shape[1], x.shape[2]);
  if (positions != Type{DType::i32, {x.shape[0]}})
    throw Error("positions must be i32[{}], got {}", x.shape[0], to_string(positions));
}

void reference(const ir::ReferenceArgs& args) {
  const auto &x = args.in[0], &positions = args.in[3];
  const auto heads = static_cast<size_t>(args.in_types[0].shape[1]);
  const auto width = static_cast<size_t>(args.in_types[0].shape[2]);
  const auto pairs = static_cast<size_t>(args.in_types[1].shape[1]);
  const bool interleaved = args.attrs.flag("interleaved");
  const double sign = args.attrs.flag("inverse") ? -1 : 1;
  args.out[0] = x;
  for (size_t row = 0; row * width < x.size(); ++row) {
    const auto table = static_cast<size_t>(positions[row / heads]) * pairs;
    for (size_t i = 0; i < pairs; ++i) {
      const size_t at_a = row * width + (interleaved ? 2 * i : i);
      const size_t at_b = interleaved ? at_a + 1 : at_a + pairs;
      const double cos = args.in[1][table + i], sin = sign * args.in[2][table + i];
      args.out[0][at_a] = x[at_a] * cos - x[at_b] * sin;
      args.out[0][at_b] = x[at_a] * sin + x[at_b] * cos;
    }
  }
}

std::vector<ir::Sample> samples() {
  std::vector<ir::Sample> made;
  const auto add_case = [&](std::string name, DType dtype, Shape x, int64_t table, int64_t pairs,
                            int64_t interleaved, int64_t inverse) {
    const int64_t tokens = x[0];
    made.push_back({.name = std::move(name),
                    .inputs = {{.type = {dtype, std::move(x)}, .low = -2, .high = 2},
                               {.type = {DType::f32, {table, pairs}}},
                               {.type = {DType::f32, {table, pairs}}},
                               {.type = {DType::i32, {tokens}},
                                .low = 0,
                                .high = static_cast<double>(table - 1)}},
                    .attrs = {{"interleaved", interleaved}, {"inverse", inverse}}});
  };
  add_case("half", DType::f32, {7, 3, 12}, 9, 6, 0, 0);
  add_case("half_inverse", DType::f32, {5, 2, 64}, 9, 32, 0, 1);
  add_case("pairs", DType::f32, {7, 3, 12}, 9, 6, 1, 0);
  add_case("pairs_inverse", DType::f32, {5, 2, 64}, 9, 32, 1, 1);
  add_case("partial", DType::f32, {6, 2, 23}, 5, 7, 0, 0);
  add_case("partial_pairs", DType::f32, {6, 2, 41}, 5, 19, 1, 0);
  add_case("bf16_half", DType::bf16, {65, 4, 64}, 33, 32, 0, 0);
  add_case("bf16_pairs", DType::bf16, {9, 2, 16}, 12, 8, 1, 0);
  // Narrow heads go two at a time, so an odd number leaves one.
  add_case("narrow_pairs", DType::f32, {9, 5, 16}, 12, 8, 1, 1);
  add_case("narrow_half", DType::f32, {9, 5, 16}, 12, 8, 0, 0);
  add_case("f16", DType::f16, {4, 1, 10}, 4, 5, 0, 0);
  add_case("f64", DType::f64, {4, 2, 10}, 4, 5, 1, 0);
  add_case("no_pairs", DType::f32, {3, 2, 5}, 4, 0, 0, 0);
  add_case("no_tokens", DType::f32, {0, 2, 8}, 4, 4, 0, 0);
  return made;
}

}  // namespace

const OpDef kRope{
    .name = "rope",
    .attrs = {{"interleaved", ir::AttrKind::i64, {}},
              {"inverse", ir::AttrKind::i64, ir::Attr{int64_t{0}}}},
    .infer =
        [](std::span<const Type> in, const ir::Attrs&) {
          check_operands(in);
          return std::vector<Type>{in[0]};
        },
    // The transpose of a rotation is the rotation back. The tables are constants of the model.
    .vjp = [](const ir::VjpArgs& args) -> std::vector<Value> {
      ir::Attrs attrs = args.attrs;
      attrs.set("inverse", int64_t{args.attrs.flag("inverse") ? 0 : 1});
      return {
          args.graph.add1(
              kRope, {args.cotangents[0], args.inputs[1], args.inputs[2], args.inputs[3]}, attrs),
          Value{}, Value{}, Value{}};
    },
    .shard = [](const OpInstance&) { return std::string("tn!h,!s!p,!s!p,t->tn!h"); },
    .cpu = rope_kernels(),
    .cost =
        [](const OpInstance& op) {
          return ir::Cost{
              3.0 * static_cast<double>(ir::num_elements(op.in[0].shape)),
              static_cast<double>(2 * ir::byte_size(op.in[0]) + 2 * ir::byte_size(op.in[1]))};
        },
    .samples = samples,
    .reference = reference,
    .rows = rope_tile,
};

Value rope(Value x_TNH, Value cos_SP, Value sin_SP, Value positions_T, bool interleaved,
           bool inverse, Where where) {
  return x_TNH.graph->add1(kRope, {x_TNH, cos_SP, sin_SP, positions_T},
                           {{"interleaved", int64_t{interleaved}}, {"inverse", int64_t{inverse}}},
                           where);
}

}  // namespace rhea::ops
