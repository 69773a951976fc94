// The compiled form of a graph: kernel calls in order, with the place of every operand and result.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rhea/exec/cpu/kernel_choice.h"
#include "rhea/exec/executable.h"
#include "rhea/ir/graph.h"
#include "rhea/passes/plan_memory.h"

namespace rhea::exec::cpu {

// Where a buffer begins: a base that is known at binding plus an offset fixed by the plan.
struct Place {
  enum class Base : uint8_t { arena, input, output, constant };
  Base base = Base::arena;
  int32_t index = 0;       // of the graph input or output, or of Program::buffers
  int64_t offset = 0;      // bytes
  int64_t row_stride = 0;  // elements, ir::Buffer::row_stride
  bool operator==(const Place&) const = default;
};

struct Step {
  std::shared_ptr<const KernelChoice> choice;
  std::vector<Place> in, out;
  int32_t workspace = -1;  // of Program::buffers; -1: none
  int32_t node = -1;       // in Program::graph
  bool serial = false;     // too small to wake other threads for
  bool copy = false;       // moves the node's result; not the node's own kernel
};

// A piece of the arena. Steps of its life are numbered up to Program::num_kernel_steps: what is
// copied after the last kernel counts as one step.
struct ArenaBuffer {
  passes::Lifetime life;
  int32_t node = -1;  // in Program::graph, that makes the value or uses the workspace
  bool workspace = false;
  int64_t offset = 0;  // bytes from the begin of the arena, known when the layout is made
};

// Memory behind a graph input or output.
struct Binding {
  passes::StepRange touched = {INT32_MAX, -1};  // by the steps; an output: from its first write on
  int64_t arena_offset = -1;                    // -1: the caller's memory
};

struct Constant {
  double value = 0;
  ir::Type type;
  int64_t offset = 0;
};

struct Program {
  ir::Graph graph;  // legal: every node that runs has a kernel
  std::vector<Step> steps;
  std::vector<Constant> constants;
  MemoryPlan memory;  // scratch: of one thread; arena, live: known when the layout is made
  int32_t num_kernel_steps = 0;
  std::vector<ArenaBuffer> buffers;
  std::vector<Binding> inputs, outputs;
  std::shared_ptr<KernelChooser> kernels;
};

// Without a layout: arena_layout.h makes it. `reuse_in_place` false: every result gets a buffer of
// its own, nothing is a view of another value except reshapes (interpreting).
Program make_program(ir::Graph graph, std::shared_ptr<KernelChooser> kernels, bool reuse_in_place);

// Replaces nodes that have no kernel by their decomposition until every node has one.
ir::Graph legalize(const ir::Graph& graph, KernelChooser& kernels);

}  // namespace rhea::exec::cpu
