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
  const OpDef* op = nullptr;
  std::span<const Type> in;
  std::span<const Type> out;
  const Attrs* attrs = nullptr;
};

// One operand or result at run time. Rows (dim 0) lie `row_stride` elements apart and are
// contiguous inside; so a tensor [T,N,H] may be a slice of the columns of a wider [T,W] one. For
// contiguous tensors row_stride = elements of one row; scalars and packed layouts have row_stride
// 0.
struct Buffer {
  void* data = nullptr;
  int64_t row_stride = 0;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

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
  int64_t scratch_bytes = 0;
  int64_t workspace_bytes = 0;
  std::shared_ptr<const void> state;  // shapes, blockings, primitives; immutable while running
  // Heavy state (library primitives, tables) is made here and not in `plan`, so that planning a
  // model that could never run here stays cheap. Called once before the first run; its result
  // becomes `state`, and nodes of the same op, types and attributes share it.
  std::function<std::shared_ptr<const void>()> make_state;
  void (*run)(const KernelArgs&) = nullptr;
  // Operand i may share its buffer with result j: pairs (i, j). Only valid if every element is read
  // before it is written.
  std::vector<std::pair<int, int>> in_place;
  // Operands and results that may have a row_stride wider than a row (bit i = operand or result i).
  uint64_t strided_in = 0;
  uint64_t strided_out = 0;
  std::string note;  // shown by `rhea plan`, e.g. "256-row blocks, brg:avx512_core_bf16"
};

struct CpuKernel {
  std::string_view name;
  Isa isa = Isa::plain;  // lowest instruction set it needs
  // Empty: accepted; else the reason of the refusal, which is logged. Null: accepts everything.
  std::function<std::string(const OpInstance&)> accepts;
  std::function<KernelPlan(const OpInstance&)> plan;
};

}  // namespace rhea::ir
