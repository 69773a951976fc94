// Copies between places of the memory plan; made by the executor, never by model code.
#pragma once
#include <memory>

#include "rhea/exec/cpu/kernel_choice.h"
#include "rhea/ir/op_def.h"

namespace rhea::exec::cpu {

// Identity that makes a new buffer.
extern const ir::OpDef kCopy;

// Rows of `type` from one place to another, either of them strided.
std::shared_ptr<const KernelChoice> copy_choice(const ir::Type& type);

}  // namespace rhea::exec::cpu
