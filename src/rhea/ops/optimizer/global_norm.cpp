// Row of global_norm: the 2-norm of all gradients together, for clipping and for finding NaN and
// Inf. Of some gradients it gets the sum of squares that their producer made.
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

// Operands before those that are sums of squares.
size_t num_gradients(size_t operands, const Attrs& attrs) {
  return operands - static_cast<size_t>(attrs.i64("num_squares"));
}

std::vector<Type> infer(std::span<const Type> in, const Attrs& attrs) {
  const int64_t num_squares = attrs.i64("num_squares");
  if (num_squares < 0 || num_squares > static_cast<int64_t>(in.size()))
    throw Error("num_squares is {}, expected 0 to {}, the number of operands", num_squares,
                in.size());
  const size_t gradients = num_gradients(in.size(), attrs);
  for (size_t i = 0; i < in.size(); ++i) {
    if (i < gradients && !is_float(in[i].dtype))
      throw Error("needs floating point operands, got {}", to_string(in[i]));
    if (i >= gradients && in[i] != Type{DType::f64, {}})
      throw Error("the last {} operands are sums of squares, f64[], got {}", num_squares,
                  to_string(in[i]));
  }
  return {{DType::f32, {}}};
}

// Phase 0 sums the squares of blocks of kBlock elements, phase 1 adds the blocks in order, then the
// sums that came as operands.
constexpr int64_t kBlock = 1 << 16;
struct State {
  struct Piece {
    int operand;
    int64_t begin, count;
  };
  std::vector<Piece> pieces;
  std::vector<SumSquaresFn> sum;  // per gradient
  size_t first_squares = 0, operands = 0;
};

void run(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  auto* sums = static_cast<double*>(args.workspace);
  if (args.phase == 0) {
    for (int64_t i = args.begin; i < args.end; ++i) {
      const auto& piece = s.pieces[static_cast<size_t>(i)];
      sums[i] = s.sum[static_cast<size_t>(piece.operand)](args.in[piece.operand].data, piece.begin,
                                                          piece.count);
    }
    return;
  }
  double total = 0;
  for (size_t i = 0; i < s.pieces.size(); ++i) total += sums[i];
  for (size_t i = s.first_squares; i < s.operands; ++i) total += *args.in[i].as<double>();
  *args.out[0].as<float>() = static_cast<float>(std::sqrt(total));
}

KernelPlan plan_for(const OpInstance& node, Isa isa) {
  auto state = std::make_shared<State>();
  state->first_squares = num_gradients(node.in.size(), *node.attrs);
  state->operands = node.in.size();
  for (size_t i = 0; i < state->first_squares; ++i) {
    state->sum.push_back(optimizer_kernels(isa).sum_squares[static_cast<int>(node.in[i].dtype)]);
    const int64_t count = num_elements(node.in[i].shape);
    for (int64_t at = 0; at < count; at += kBlock)
      state->pieces.push_back({static_cast<int>(i), at, std::min(kBlock, count - at)});
  }
  KernelPlan plan;
  plan.grid = {static_cast<int64_t>(state->pieces.size()), 1};
  plan.workspace_bytes = static_cast<int64_t>(state->pieces.size() * sizeof(double));
  plan.state = std::move(state);
  plan.run = run;
  return plan;
}

std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const DType t : {DType::f32, DType::bf16, DType::f16, DType::f64})
    all.push_back({"mixed_" + std::string(dtype_name(t)),
                   {{{t, {5, 7}}}, {{DType::f32, {}}}, {{t, {3, 2, 4}}}},
                   {},
                   1,
                   false});
  all.push_back({"long", {{{DType::f32, {70001}}}, {{DType::bf16, {300, 301}}}}, {}, 1, false});
  all.push_back({"none", {{{DType::f32, {0}}}}, {}, 1, false});
  // No sum of squares is negative.
  const ir::SampleInput squares{{DType::f64, {}}, 1.0, 9.0};
  all.push_back({"squares",
                 {{{DType::f32, {300, 301}}}, squares, squares},
                 {{"num_squares", int64_t{2}}},
                 1,
                 false});
  all.push_back({"squares_alone", {squares, squares}, {{"num_squares", int64_t{2}}}, 1, false});
  return all;
}

}  // namespace

const OpDef kGlobalNorm{
    .name = "global_norm",
    .attrs = {{"num_squares", AttrKind::i64, ir::Attr{int64_t{0}}}},
    .infer = infer,
    .shard =
        [](const OpInstance& node) {
          // No dim may be split blindly: a split operand leaves a sum of squares, not a norm.
          std::string text;
          char letter = 'a';
          for (size_t operand = 0; operand < node.in.size(); ++operand) {
            const Type& type = node.in[operand];
            if (operand > 0) text += ",";
            for (int64_t i = 0; i < type.rank(); ++i) {
              text += '!';
              text += letter;
              letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1);
            }
          }
          return text + "->";
        },
    .cpu = kernels_per_isa("sum_of_squares", plan_for),
    .cost =
        [](const OpInstance& node) {
          ir::Cost cost;
          for (const Type& type : node.in) {
            cost.flops += 2.0 * static_cast<double>(num_elements(type.shape));
            cost.bytes += static_cast<double>(byte_size(type));
          }
          return cost;
        },
    .samples = samples,
    .reference =
        [](const ir::ReferenceArgs& args) {
          double total = 0;
          const size_t gradients = num_gradients(args.in.size(), args.attrs);
          for (size_t i = 0; i < args.in.size(); ++i) {
            for (const double v : args.in[i]) total += i < gradients ? v * v : v;
          }
          args.out[0][0] = std::sqrt(total);
        },
};

Value global_norm(std::span<const Value> grads, std::span<const Value> squares, Where where) {
  std::vector<Value> operands(grads.begin(), grads.end());
  operands.insert(operands.end(), squares.begin(), squares.end());
  if (operands.empty()) throw Error("global_norm needs at least one gradient");
  return operands[0].graph->add(kGlobalNorm, operands,
                                {{"num_squares", static_cast<int64_t>(squares.size())}}, where)[0];
}

}  // namespace rhea::ops
