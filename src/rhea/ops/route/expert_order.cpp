// Row expert_order: a stable sort of slots by expert.      T tokens, k experts of a token, E
// experts
#include <algorithm>
#include <memory>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/ops/route/route.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using ir::AttrKind;
using ir::Attrs;
using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;
using ir::Sample;
using ir::Type;

std::vector<Type> infer(std::span<const Type> in, const Attrs& attrs) {
  expect_operands(in, {"experts"});
  const int64_t experts = attrs.i64("experts");
  if (in[0].rank() != 2 || in[0].dtype != DType::i32)
    throw Error("operand 'experts' must be i32 [T,k], got {}", to_string(in[0]));
  if (experts < 1) throw Error("experts must be at least 1, got {}", experts);
  const int64_t rows = num_elements(in[0].shape);
  return {{DType::i32, {rows}},
          {DType::i32, in[0].shape},
          {DType::i32, {rows}},
          {DType::i32, {experts}}};
}

// A counting sort; Index reads and writes elements of any type.
template <class T>
void sort(const T* experts, int64_t slots, int64_t num_experts, T* slots_R, T* rows_Tk,
          T* experts_R, T* counts_E, int64_t* next) {
  const auto valid = [&](int64_t slot) {
    return experts[slot] >= 0 && experts[slot] < static_cast<T>(num_experts);
  };
  std::fill_n(next, num_experts, int64_t{0});
  for (int64_t slot = 0; slot < slots; ++slot) {
    if (valid(slot)) ++next[static_cast<int64_t>(experts[slot])];
  }
  int64_t first = 0;
  for (int64_t e = 0; e < num_experts; ++e) {
    const int64_t count = next[e];
    counts_E[e] = static_cast<T>(count);
    std::fill_n(experts_R + first, count, static_cast<T>(e));
    next[e] = first;
    first += count;
  }
  std::fill(experts_R + first, experts_R + slots, static_cast<T>(num_experts - 1));
  std::fill(slots_R + first, slots_R + slots, static_cast<T>(-1));
  for (int64_t slot = 0; slot < slots; ++slot) {
    rows_Tk[slot] = static_cast<T>(-1);
    if (!valid(slot)) continue;
    const int64_t row = next[static_cast<int64_t>(experts[slot])]++;
    rows_Tk[slot] = static_cast<T>(row);
    slots_R[row] = static_cast<T>(slot);
  }
}

struct State {
  int64_t slots = 0, num_experts = 0;
};

void run(const KernelArgs& args) {
  const auto& s = *static_cast<const State*>(args.state);
  sort(args.in[0].as<const int32_t>(), s.slots, s.num_experts, args.out[0].as<int32_t>(),
       args.out[1].as<int32_t>(), args.out[2].as<int32_t>(), args.out[3].as<int32_t>(),
       static_cast<int64_t*>(args.scratch));
}

KernelPlan plan(const OpInstance& op) {
  auto state = std::make_shared<State>();
  state->slots = num_elements(op.in[0].shape);
  state->num_experts = op.out[3].shape[0];
  if (state->slots > INT32_MAX) throw Error("more than 2^31 slots: {}", state->slots);
  KernelPlan plan;
  // One item: a pass over the ids, nothing beside the products that follow.
  plan.scratch_bytes = state->num_experts * static_cast<int64_t>(sizeof(int64_t));
  plan.state = std::move(state);
  plan.run = run;
  plan.note = "counting sort in one item";
  return plan;
}

void reference(const ir::ReferenceArgs& args) {
  const int64_t experts = args.out_types[3].shape[0];
  std::vector<int64_t> next(static_cast<size_t>(experts));
  sort(args.in[0].data(), static_cast<int64_t>(args.in[0].size()), experts, args.out[0].data(),
       args.out[1].data(), args.out[2].data(), args.out[3].data(), next.data());
}

std::vector<Sample> samples() {
  const auto sample = [](std::string name, Shape shape, int64_t experts, double low, double high) {
    return Sample{.name = std::move(name),
                  .inputs = {uniform(DType::i32, std::move(shape), low, high)},
                  .attrs = {{"experts", experts}}};
  };
  return {sample("top_2", {9, 2}, 4, 0, 3),         sample("top_1", {7, 1}, 3, 0, 2),
          sample("empty_experts", {5, 2}, 9, 3, 5), sample("dropped", {8, 3}, 4, -1, 4),
          sample("all_dropped", {3, 2}, 2, 7, 9),   sample("one_expert", {4, 1}, 1, 0, 0),
          sample("many", {130, 4}, 64, 0, 63),      sample("no_tokens", {0, 2}, 3, 0, 2)};
}

}  // namespace

const OpDef kExpertOrder{
    .name = "expert_order",
    .attrs = {{"experts", AttrKind::i64, {}}},
    .infer = infer,
    // The order of rows is one of the whole batch.
    .shard = [](const OpInstance&) { return std::string("!t!k->!r,!t!k,!r,!e"); },
    .cpu = {{"counting_sort", Isa::plain, nullptr, plan}},
    .cost =
        [](const OpInstance& op) {
          return ir::Cost{3.0 * static_cast<double>(num_elements(op.in[0].shape)),
                          operand_and_result_bytes(op)};
        },
    .samples = samples,
    .reference = reference,
};

ExpertOrder expert_order(Value experts_Tk, int64_t num_experts, Where where) {
  const auto made =
      experts_Tk.graph->add(kExpertOrder, {{experts_Tk}}, {{"experts", num_experts}}, where);
  return {made[0], made[1], made[2], made[3]};
}

}  // namespace rhea::ops
