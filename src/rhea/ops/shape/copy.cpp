// Copies with strides. Elements are moved as integers of their size, so NaN payloads survive.
#include "rhea/ops/shape/copy.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

using ir::KernelArgs;
using ir::KernelPlan;
using ir::OpInstance;

constexpr int64_t kBlock = 16384;  // elements of one item

struct CopyState {
  ir::Shape shape;  // result, dims of size 1 dropped and joined where they are one run
  StridedSource source;
  int64_t count = 0;
  int64_t size = 0;         // bytes of an element
  int64_t operand_row = 0;  // row stride of a contiguous operand
};

template <class T>
void copy_run(const T* from, int64_t stride, T* to, int64_t n) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else if (stride == 0) {
    std::fill_n(to, n, *from);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
  }
}

template <class T>
void copy_range(const CopyState& s, const KernelArgs& args, int64_t begin, int64_t end) {
  const auto rank = static_cast<int>(s.shape.size());
  const T* from = args.in[0].as<T>();
  T* to = args.out[0].as<T>();
  // Strides and origin with the operand's real row stride.
  const int64_t wider = args.in[0].row_stride - s.operand_row;
  std::vector<int64_t>::const_pointer strides = s.source.strides.data();
  const int64_t origin = s.source.offset + s.source.row_offset * wider;
  const auto stride = [&](int d) { return strides[d] + (d == s.source.row_dim ? wider : 0); };
  for (int64_t i = begin; i < end;) {
    // Position of element i: the last dim is the run, the others are unravelled.
    const int64_t run = s.shape[static_cast<size_t>(rank - 1)];
    const int64_t column = i % run;
    int64_t at = origin + column * stride(rank - 1);
    int64_t rest = i / run;
    for (int d = rank - 2; d >= 0; --d) {
      const int64_t dim = s.shape[static_cast<size_t>(d)];
      at += (rest % dim) * stride(d);
      rest /= dim;
    }
    const int64_t n = std::min(run - column, end - i);
    copy_run(from + at, stride(rank - 1), to + i, n);
    i += n;
  }
}

template <class T>
void run_copy(const KernelArgs& args) {
  const auto& s = *static_cast<const CopyState*>(args.state);
  copy_range<T>(s, args, args.begin * kBlock, std::min(args.end * kBlock, s.count));
}

// Drops dims of size 1 and joins neighbours that are one run, except over operand rows, whose
// stride is known at run time only.
void simplify(CopyState& s) {
  ir::Shape shape;
  std::vector<int64_t> strides;
  int row_dim = -1;
  for (size_t d = 0; d < s.shape.size(); ++d) {
    if (s.shape[d] == 1) continue;
    const bool is_row = static_cast<int>(d) == s.source.row_dim;
    const bool after_row = row_dim == static_cast<int>(shape.size()) - 1 && row_dim >= 0;
    if (!shape.empty() && !is_row && !after_row &&
        strides.back() == s.source.strides[d] * s.shape[d]) {
      shape.back() *= s.shape[d];
      strides.back() = s.source.strides[d];
      continue;
    }
    if (is_row) row_dim = static_cast<int>(shape.size());
    shape.push_back(s.shape[d]);
    strides.push_back(s.source.strides[d]);
  }
  if (shape.empty()) {
    shape = {1};
    strides = {0};
  }
  s.shape = std::move(shape);
  s.source.strides = std::move(strides);
  s.source.row_dim = row_dim;
}

void (*runner(int64_t size))(const KernelArgs&) {
  switch (size) {
    case 1:
      return run_copy<uint8_t>;
    case 2:
      return run_copy<uint16_t>;
    case 4:
      return run_copy<uint32_t>;
    default:
      return run_copy<uint64_t>;
  }
}

}  // namespace

KernelPlan strided_copy_plan(const OpInstance& op, StridedSource source) {
  auto state = std::make_shared<CopyState>();
  state->shape = op.out[0].shape;
  state->count = num_elements(op.out[0].shape);
  state->source = std::move(source);
  state->size = dtype_size(op.out[0].dtype);
  state->operand_row = contiguous_row_stride(op.in[0].shape);
  if (state->count > 0) simplify(*state);
  KernelPlan plan;
  plan.grid = {div_up(state->count, kBlock)};
  plan.run = runner(state->size);
  plan.strided_in = 1;
  plan.state = std::move(state);
  return plan;
}

KernelPlan flat_copy_plan(const OpInstance& op) {
  StridedSource source;
  const ir::Shape& shape = op.out[0].shape;
  source.strides.assign(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) source.strides[d - 1] = source.strides[d] * shape[d];
  KernelPlan plan = strided_copy_plan(op, std::move(source));
  plan.strided_in = 0;
  plan.in_place = {{0, 0}};
  return plan;
}

}  // namespace rhea::ops
