#include "rhea/exec/cpu/copy.h"

#include <algorithm>
#include <cstring>

#include "rhea/base/error.h"
#include "rhea/exec/cpu/views.h"

namespace rhea::exec::cpu {
namespace {

constexpr int64_t kChunkBytes = int64_t{256} << 10;

struct CopyState {
  int64_t rows, row_bytes, element;
  int64_t rows_per_item;  // 0: one long row cut into chunks of kChunkBytes
};

void run_copy(const ir::KernelArgs& args) {
  const auto& state = *static_cast<const CopyState*>(args.state);
  const auto* from = args.in[0].as<const std::byte>();
  auto* to = args.out[0].as<std::byte>();
  if (state.rows_per_item == 0) {
    const int64_t begin = args.begin * kChunkBytes;
    const int64_t end = std::min(args.end * kChunkBytes, state.row_bytes);
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    return;
  }
  const int64_t from_stride = args.in[0].row_stride * state.element;
  const int64_t to_stride = args.out[0].row_stride * state.element;
  const int64_t end = std::min(args.end * state.rows_per_item, state.rows);
  for (int64_t row = args.begin * state.rows_per_item; row < end; ++row)
    std::memcpy(to + row * to_stride, from + row * from_stride,
                static_cast<size_t>(state.row_bytes));
}

ir::KernelPlan plan_copy(const ir::Type& type) {
  CopyState state{1, ir::byte_size(type), dtype_size(type.dtype), 0};
  ir::KernelPlan plan;
  if (type.layout == ir::Layout::row_major && type.rank() >= 2 && state.row_bytes > 0) {
    state.rows = type.shape[0];
    state.row_bytes /= state.rows;
    state.rows_per_item = std::max<int64_t>(1, kChunkBytes / state.row_bytes);
    plan.grid = {div_up(state.rows, state.rows_per_item)};
  } else {
    plan.grid = {div_up(state.row_bytes, kChunkBytes)};
  }
  plan.state = std::make_shared<const CopyState>(state);
  plan.run = run_copy;
  plan.strided_in = plan.strided_out = 1;
  return plan;
}

}  // namespace

const ir::OpDef kCopy{
    .name = "copy",
    .infer = [](std::span<const ir::Type> in, const ir::Attrs&) -> std::vector<ir::Type> {
      if (in.size() != 1) throw Error("takes one operand, got {}", in.size());
      return {in[0]};
    },
    .cpu = {{.name = "rows", .plan = [](const ir::OpInstance& op) { return plan_copy(op.in[0]); }}},
};

std::shared_ptr<const KernelChoice> copy_choice(const ir::Type& type) {
  auto choice = std::make_shared<KernelChoice>();
  choice->kernel = "rows";
  choice->types = ir::to_string(type);
  choice->cost = {0, 2.0 * static_cast<double>(ir::byte_size(type))};
  choice->plan = plan_copy(type);
  return choice;
}

}  // namespace rhea::exec::cpu
