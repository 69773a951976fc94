#include "rhea/ops/plan_kernel.h"

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/base/rethrow.h"

namespace rhea::ops {
namespace {

// More than any machine runs or holds, and far from where sums of them overflow.
constexpr int64_t kLimit = int64_t{1} << 40;

std::string name_of(const ir::CpuKernel& kernel, const ir::OpInstance& node) {
  return fmt::format("kernel '{}' of {}({} -> {})", kernel.name, node.op->name,
                     ir::to_string(node.in), ir::to_string(node.out));
}

void check_grid(const ir::KernelPlan& plan, const ir::OpInstance& node) {
  int64_t items = 0;
  for (size_t phase = 0; phase < plan.grid.size(); ++phase) {
    const int64_t count = plan.grid[phase];
    if (count < 0 || count > kLimit)
      throw Error("plans {} items in phase {}, expected 0 to 2^40", count, phase);
    items += count;
  }
  const bool computes = std::ranges::any_of(
      node.out, [](const ir::Type& type) { return ir::num_elements(type.shape) > 0; });
  if (items == 0 && computes)
    throw Error("plans no items, so that its results would not be computed; expected one at least");
}

void check_bytes(int64_t bytes, std::string_view what) {
  if (bytes < 0 || bytes > kLimit)
    throw Error("plans {} bytes of {}, expected 0 to 2^40", bytes, what);
}

void check_in_place(const ir::KernelPlan& plan, const ir::OpInstance& node) {
  const auto is_index = [](int i, std::span<const ir::Type> types) {
    return i >= 0 && static_cast<size_t>(i) < types.size();
  };
  for (const auto& [i, j] : plan.in_place) {
    if (!is_index(i, node.in) || !is_index(j, node.out))
      throw Error(
          "plans result {} in the place of operand {}; there are {} operands and {} results", j, i,
          node.in.size(), node.out.size());
  }
}

}  // namespace

std::string refusal(const ir::CpuKernel& kernel, const ir::OpInstance& node, Isa isa,
                    ir::Place place) {
  if (kernel.isa > isa)
    return fmt::format("needs {}, have {}", isa_name(kernel.isa), isa_name(isa));
  if (!kernel.accepts) return "";
  try {
    return kernel.accepts(node);
  } catch (...) {
    rethrow_with(name_of(kernel, node) + ": accepts", ir::to_string(place));
  }
}

ir::KernelPlan plan_kernel(const ir::CpuKernel& kernel, const ir::OpInstance& node,
                           ir::Place place) {
  try {
    if (!kernel.plan) throw Error("lacks plan");
    ir::KernelPlan plan = kernel.plan(node);
    if (plan.run == nullptr) throw Error("plans no run, the function that computes its items");
    check_grid(plan, node);
    check_bytes(plan.scratch_bytes, "scratch");
    check_bytes(plan.workspace_bytes, "workspace");
    check_in_place(plan, node);
    return plan;
  } catch (...) {
    rethrow_with(name_of(kernel, node), ir::to_string(place));
  }
}

void make_state(ir::KernelPlan& plan, std::string_view kernel, std::string_view of) {
  if (!plan.make_state) return;
  try {
    plan.state = plan.make_state();
  } catch (...) {
    rethrow_with(fmt::format("kernel '{}' of {}: make_state", kernel, of));
  }
}

}  // namespace rhea::ops
