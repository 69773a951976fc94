// Kernels of rows and plugins, asked with checks of what they answer.
#pragma once
#include <string>

#include "rhea/ir/cpu_kernel.h"
#include "rhea/ir/row_cells.h"

namespace rhea::ops {

// Why the kernel does not take the node on a machine with `isa`; empty: it does. Throws Error
// naming kernel, op and types where `accepts` throws.
std::string refusal(const ir::CpuKernel& kernel, const ir::OpInstance& node, Isa isa,
                    ir::Place place = {});

// kernel.plan(node). Throws Error naming kernel, op and types where it throws, or gives a plan that
// cannot be run: no `run`; no items although there are results to compute, a negative number of
// them or more than 2^40; scratch or workspace that is negative or above 2^40 bytes; pairs of
// in_place that are no operand and result.
ir::KernelPlan plan_kernel(const ir::CpuKernel& kernel, const ir::OpInstance& node,
                           ir::Place place = {});

// plan.make_state(), whose result becomes plan.state; nothing where there is none to make. Throws
// Error "kernel 'KERNEL' of OF: make_state: ..." where it throws.
void make_state(ir::KernelPlan& plan, std::string_view kernel, std::string_view of);

}  // namespace rhea::ops
