// The op table as something that grows: rows and kernels are added at start-up, by the library
// itself and by plugins through the same calls. ops.h has the rows that come with the library and
// the lookup by name.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/ir/op_def.h"

namespace rhea::ops {

// Origin of the rows that come with the library.
inline constexpr std::string_view kInTree = "rhea";

// Adds a row. The table keeps the address, so the row must live as long as the process: a constant
// at namespace scope. `origin` says in errors and logs who added it ("my_kernels.cpp").
// Throws Error, naming origin and op, where
//   the name is taken (with the origin of both) or has other letters than a-z, 0-9 and _;
//   infer is absent; or decomposition, reference and kernels are all absent;
//   neither cost nor decomposition is there: FLOPs, memory plans and recomputation need one.
// All additions happen before the first graph is made; reading is possible from any thread then.
void add_op(const ir::OpDef& row, std::string_view origin);
void add_op(const ir::OpDef&& row, std::string_view origin) = delete;

// A kernel for an op of the table, whoever added that one. Added kernels are tried before those of
// the row, in the order in which they were added; nodes that one of them accepts are not fused into
// clusters. Refusals with their reason and the choice are logged once per op and types.
struct AddedKernel {
  ir::CpuKernel kernel;  // as it was added
  std::string origin;    // the file that added it
};
// Throws Error where no such op exists (naming the nearest), a kernel of that name exists for the
// op, or `plan` is absent.
void add_cpu_kernel(std::string_view op, ir::CpuKernel kernel, std::string_view origin);

// The kernels that were added for an op; empty for most.
std::span<const AddedKernel> added_kernels(const ir::OpDef& op);
// Does an added kernel run this node on a CPU with `isa`?
bool has_added_kernel(const ir::OpInstance& node, Isa isa);

// Who added the row; empty for a row that is not in the table.
std::string_view origin_of(const ir::OpDef& op);
// The rows that did not come with the library, in the order of their adding.
std::vector<const ir::OpDef*> outside_ops();

// Takes what was added while it lived out of the table again, so that a test leaves nothing to the
// next one. No graph with such a row may be left then, and nobody may read meanwhile.
class ScopedAdditions {
 public:
  // Remembers the table as it is.
  ScopedAdditions();
  // Makes the table that again.
  ~ScopedAdditions();
  ScopedAdditions(const ScopedAdditions&) = delete;
  ScopedAdditions& operator=(const ScopedAdditions&) = delete;

 private:
  std::shared_ptr<const void> before_;
};

// A kernel as a function of items and types, for kernels that prepare nothing: `run` computes items
// [args.begin, args.end) of `items`. args.state is the kernel's own and not for use in `run`.
struct SimpleKernel {
  std::string_view name;  // a literal
  Isa isa = Isa::plain;   // the lowest instruction set that it needs
  std::function<std::string(const ir::OpInstance&)> accepts;  // as in ir::CpuKernel
  std::function<int64_t(const ir::OpInstance&)> items;        // independent ones; null: one
  // Called by many threads at once, each with items of its own.
  void (*run)(const ir::KernelArgs& args, const ir::OpInstance& node) = nullptr;
};
// The kernel that plans nothing but its items.
ir::CpuKernel to_cpu_kernel(SimpleKernel kernel);

// For infer and forward: throws Error "my_rope requires a sequence length that is a multiple of
// 256, got 200".
void require_multiple(std::string_view who, std::string_view what, int64_t value, int64_t of);
// "my_rope requires a head dim of at most 128, got 192".
void require_at_most(std::string_view who, std::string_view what, int64_t value, int64_t limit);

}  // namespace rhea::ops
