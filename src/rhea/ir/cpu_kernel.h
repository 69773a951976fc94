// The interface of a CPU kernel: chosen once per node before the first step, then run over parts of
// a grid.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/cpu_features.h"
#include "rhea/ir/attr.h"
#include "rhea/ir/type.h"

namespace rhea::ir {

struct OpDef;

// What a kernel is chosen on: an op with the types of its operands and results.
struct OpInstance {
  const OpDef* op = nullptr;     // the row
  std::span<const Type> in;      // types of the operands
  std::span<const Type> out;     // types of the results
  const Attrs* attrs = nullptr;  // all that the row has, defaults filled in
};

// One operand or result at run time. Rows (dim 0) lie `row_stride` elements apart and are
// contiguous inside; so a tensor [T,N,H] may be a slice of the columns of a wider [T,W] one. For
// contiguous tensors row_stride = elements of one row; scalars and packed layouts have row_stride
// 0.
struct Buffer {
  void* data = nullptr;    // the first element
  int64_t row_stride = 0;  // in elements

  // The data as elements of the type that the node says.
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// What a kernel runs on: a part of one phase.
struct KernelArgs {
  int phase = 0;                // which grid of the plan
  int64_t begin = 0, end = 0;   // items of the grid
  const Buffer* in = nullptr;   // one per operand
  const Buffer* out = nullptr;  // one per result
  void* scratch =
      nullptr;  // KernelPlan::scratch_bytes, private to the running thread, 64-byte aligned
  void* workspace =
      nullptr;  // KernelPlan::workspace_bytes, shared by the whole call, 64-byte aligned
  const void* state = nullptr;  // KernelPlan::state
};

// What a kernel prepares for one node. Everything that depends on shapes is computed here and never
// in run.
struct KernelPlan {
  // Number of independent items of each phase; phase p+1 starts when all items of phase p are done.
  // The grid is a function of the shapes alone and an item's result of its index alone, so the bits
  // do not depend on threads.
  std::vector<int64_t> grid = {1};
  int64_t scratch_bytes = 0;          // KernelArgs::scratch, for each thread
  int64_t workspace_bytes = 0;        // KernelArgs::workspace, for the node
  std::shared_ptr<const void> state;  // shapes, blockings, primitives; immutable while running
  // Heavy state (library primitives, tables) is made here and not in `plan`, so that planning a
  // model that could never run here stays cheap. Called once before the first run; its result
  // becomes `state`, and nodes of the same op, types and attributes share it.
  std::function<std::shared_ptr<const void>()> make_state;
  // Computes items [begin, end) of a phase; called by many threads at once.
  void (*run)(const KernelArgs&) = nullptr;
  // Operand i may share its buffer with result j: pairs (i, j). Only valid if every element is read
  // before it is written.
  std::vector<std::pair<int, int>> in_place;
  // Operands that may have a row_stride wider than a row (bit i = operand i).
  uint64_t strided_in = 0;
  uint64_t strided_out = 0;  // the same for results
  std::string note;          // shown by `rhea plan`, e.g. "256-row blocks, brg:avx512_core_bf16"
};

// A way to compute an op on a CPU.
struct CpuKernel {
  std::string_view name;  // in `rhea plan` and the log; a literal
  Isa isa = Isa::plain;   // lowest instruction set it needs
  // Empty: accepted; else the reason of the refusal, which is logged. Null: accepts everything.
  std::function<std::string(const OpInstance&)> accepts;
  // Prepares the kernel for a node that it accepts.
  std::function<KernelPlan(const OpInstance&)> plan;
};

}  // namespace rhea::ir
