// The compiled form of a graph: kernel calls in order, with the place of every operand and result.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rhea/exec/cpu/kernel_choice.h"
#include "rhea/exec/executable.h"
#include "rhea/ir/graph.h"

namespace rhea::exec::cpu {

// Where a buffer begins: a base that is known at binding plus an offset fixed by the plan.
struct Place {
  enum class Base : uint8_t { arena, input, output, constant };
  Base base = Base::arena;
  int32_t index = 0;       // of the graph input or output
  int64_t offset = 0;      // bytes
  int64_t row_stride = 0;  // elements, ir::Buffer::row_stride
  bool operator==(const Place&) const = default;
};

struct Step {
  std::shared_ptr<const KernelChoice> choice;
  std::vector<Place> in, out;
  int64_t workspace = 0;  // offset in the arena
  int32_t node = -1;      // in Program::graph
  bool serial = false;    // too small to wake other threads for
  bool copy = false;      // moves the node's result; not the node's own kernel
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
  MemoryPlan memory;               // scratch: of one thread
  int64_t values_lower_bound = 0;  // no layout of the arena can be smaller
  std::shared_ptr<KernelChooser> kernels;
};

// `reuse_in_place` false: every result gets a buffer of its own, nothing is a view of another value
// except reshapes (interpreting).
Program make_program(ir::Graph graph, std::shared_ptr<KernelChooser> kernels, bool reuse_in_place);

// Replaces nodes that have no kernel by their decomposition until every node has one.
ir::Graph legalize(const ir::Graph& graph, KernelChooser& kernels);

}  // namespace rhea::exec::cpu
