// Runs one kernel on its own, for tests and benchmarks; the executor has its own loop.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "rhea/base/thread_pool.h"
#include "rhea/ir/cpu_kernel.h"

namespace rhea::ops {

// Zeroed memory on a cache line, in huge pages where it is large.
std::shared_ptr<void> aligned_bytes(int64_t bytes);

// A planned kernel with its memory, to be run as often as wanted.
class KernelRun {
 public:
  // `node` and what it points to must outlive this.
  KernelRun(const ir::CpuKernel& kernel, const ir::OpInstance& node, ThreadPool& pool);
  // Contiguous operands and results of the node's types.
  void operator()(std::span<void* const> in, std::span<void* const> out);
  const ir::KernelPlan& plan() const { return plan_; }

 private:
  ir::OpInstance node_;
  ThreadPool& pool_;
  ir::KernelPlan plan_;
  std::vector<std::shared_ptr<void>> scratch_;
  std::shared_ptr<void> workspace_;
};

}  // namespace rhea::ops
