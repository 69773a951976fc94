#include "rhea/ops/run_kernel.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstdlib>
#include <cstring>
#include <new>

#include "rhea/base/error.h"
#include "rhea/ir/op_def.h"
#include "rhea/ops/plan_kernel.h"

namespace rhea::ops {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

ir::Buffer buffer_of(const ir::Type& type, void* data) {
  if (type.layout != ir::Layout::row_major || type.shape.empty()) return {data, 0};
  int64_t row = 1;
  for (size_t i = 1; i < type.shape.size(); ++i) row *= type.shape[i];
  return {data, row};
}

}  // namespace

std::shared_ptr<void> aligned_bytes(int64_t bytes) {
  const int64_t alignment = bytes >= kHugePage ? kHugePage : 64;
  const auto size = static_cast<size_t>(round_up(bytes + 1, alignment));
  void* data = std::aligned_alloc(static_cast<size_t>(alignment), size);
  if (data == nullptr) throw std::bad_alloc();
#if defined(__linux__)
  if (alignment == kHugePage) madvise(data, size, MADV_HUGEPAGE);
#endif
  std::memset(data, 0, size);
  return {data, std::free};
}

KernelRun::KernelRun(const ir::CpuKernel& kernel, const ir::OpInstance& node, ThreadPool& pool)
    : node_(node), pool_(pool), plan_(plan_kernel(kernel, node)) {
  make_state(plan_, kernel.name, node.op->name);
  for (int i = 0; i < pool.num_threads(); ++i)
    scratch_.push_back(aligned_bytes(plan_.scratch_bytes));
  workspace_ = aligned_bytes(plan_.workspace_bytes);
}

void KernelRun::operator()(std::span<void* const> in, std::span<void* const> out) {
  std::vector<ir::Buffer> in_buffers, out_buffers;
  for (size_t i = 0; i < in.size(); ++i) in_buffers.push_back(buffer_of(node_.in[i], in[i]));
  for (size_t i = 0; i < out.size(); ++i) out_buffers.push_back(buffer_of(node_.out[i], out[i]));
  for (size_t phase = 0; phase < plan_.grid.size(); ++phase) {
    pool_.parallel_for(plan_.grid[phase], [&](int64_t begin, int64_t end, int worker) {
      ir::KernelArgs args;
      args.phase = static_cast<int>(phase);
      args.begin = begin;
      args.end = end;
      args.in = in_buffers.data();
      args.out = out_buffers.data();
      args.scratch = scratch_[static_cast<size_t>(worker)].get();
      args.workspace = workspace_.get();
      args.state = plan_.state.get();
      plan_.run(args);
    });
  }
}

}  // namespace rhea::ops
