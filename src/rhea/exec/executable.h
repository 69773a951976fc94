// What every backend offers: compile a graph once, then run it on named buffers.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/ir/graph.h"

namespace rhea::exec {

// Memory planned for an executable, bytes.
struct MemoryPlan {
  int64_t arena = 0;      // whole arena; programs that take turns share it
  int64_t live = 0;       // largest sum of the graph's own values and workspaces alive in one step
  int64_t workspace = 0;  // part of the arena that kernels use during one call
  int64_t scratch = 0;    // per-thread buffers, all threads
  int64_t constants = 0;
};

// A compiled graph. Inputs and outputs are bound by name to memory of the caller (64-byte aligned,
// the layout of the type); an output that donates an input must be bound to the same address or
// left unbound. Binding is done once; run() neither allocates nor touches new memory after the
// first call.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual void bind_input(std::string_view name, const void* data) = 0;
  virtual void bind_output(std::string_view name, void* data) = 0;
  virtual void run() = 0;
  virtual MemoryPlan memory() const = 0;
};

}  // namespace rhea::exec
