// Runs one CPU kernel of an op row on numbers given in f64, as the executor would: grid item by
// grid item over a thread pool, every operand in a buffer of its own, with or without gaps between
// rows.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/base/rng.h"
#include "rhea/base/thread_pool.h"
#include "rhea/ir/op_def.h"

namespace rhea::testing {

// A tensor in memory, 64-byte aligned. `gap` elements lie between the rows of dim 0.
class Tensor {
 public:
  Tensor(ir::Type type, int64_t gap = 0) : type_(std::move(type)) {
    rows_ = type_.rank() > 0 ? type_.shape[0] : 1;
    width_ = rows_ > 0 ? ir::num_elements(type_.shape) / rows_ : 0;
    stride_ = width_ + gap;
    bytes_.assign(static_cast<size_t>(rows_ * stride_ * dtype_size(type_.dtype)) / 64 + 2, {});
  }
  void fill(const std::vector<double>& values) {
    for (size_t i = 0; i < values.size(); ++i)
      store_from_f64(data(), type_.dtype, at(static_cast<int64_t>(i)), values[i]);
  }
  std::vector<double> values() const {
    std::vector<double> made(static_cast<size_t>(rows_ * width_));
    for (size_t i = 0; i < made.size(); ++i)
      made[i] = load_as_f64(bytes_.data(), type_.dtype, at(static_cast<int64_t>(i)));
    return made;
  }
  void* data() { return bytes_.data(); }
  ir::Buffer buffer() { return {data(), type_.rank() > 0 ? stride_ : 0}; }
  bool same_bits(const Tensor& other) const {
    return std::memcmp(bytes_.data(), other.bytes_.data(), bytes_.size() * sizeof(Line)) == 0;
  }
  const ir::Type& type() const { return type_; }
  int64_t stride() const { return stride_; }

 private:
  int64_t at(int64_t i) const { return width_ > 0 ? i / width_ * stride_ + i % width_ : 0; }
  struct alignas(64) Line {
    char bytes[64];
  };
  ir::Type type_;
  int64_t rows_ = 0, width_ = 0, stride_ = 0;
  std::vector<Line> bytes_;
};

struct Call {
  const ir::OpDef* op;
  std::vector<ir::Type> in_types;
  ir::Attrs attrs;
  std::vector<ir::Type> out_types;

  Call(const ir::OpDef& row, std::vector<ir::Type> in, ir::Attrs given)
      : op(&row), in_types(std::move(in)), attrs(std::move(given)) {
    for (const auto& spec : row.attrs)
      if (!attrs.has(spec.name)) attrs.set(spec.name, spec.fallback.value());
    out_types = row.infer(in_types, attrs);
  }
  ir::OpInstance instance() const { return {op, in_types, out_types, &attrs}; }
};

// Operands of a sample in f64, rounded to their types.
inline std::vector<std::vector<double>> draw(const ir::Sample& sample) {
  std::vector<std::vector<double>> made;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    const auto& input = sample.inputs[i];
    const RngKey key = rng_key(i, sample.name);
    std::vector<double> values = input.values;
    if (values.empty()) {
      values.resize(static_cast<size_t>(ir::num_elements(input.type.shape)));
      for (size_t j = 0; j < values.size(); ++j)
        values[j] =
            is_float(input.type.dtype)
                ? input.low + (input.high - input.low) * rng_uniform(key, j)
                : input.low + static_cast<double>(rng_below(
                                  key, j, static_cast<uint64_t>(input.high - input.low + 1)));
    }
    Tensor tensor(input.type);
    tensor.fill(values);
    made.push_back(tensor.values());
  }
  return made;
}

inline std::vector<std::vector<double>> reference(const Call& call,
                                                  const std::vector<std::vector<double>>& in) {
  std::vector<std::vector<double>> out;
  for (const ir::Type& type : call.out_types)
    out.emplace_back(static_cast<size_t>(ir::num_elements(type.shape)));
  call.op->reference({in, out, call.in_types, call.out_types, call.attrs});
  return out;
}

// `gap`: elements between rows where the plan allows them.
inline std::vector<Tensor> run(const Call& call, const ir::CpuKernel& kernel,
                               const std::vector<std::vector<double>>& in, ThreadPool& pool,
                               int64_t gap = 0) {
  ir::KernelPlan plan = kernel.plan(call.instance());
  if (plan.make_state) plan.state = plan.make_state();
  std::vector<Tensor> operands, results;
  std::vector<ir::Buffer> in_buffers, out_buffers;
  for (size_t i = 0; i < call.in_types.size(); ++i) {
    operands.emplace_back(call.in_types[i], plan.strided_in >> i & 1 ? gap : 0);
    operands.back().fill(in[i]);
  }
  for (size_t i = 0; i < call.out_types.size(); ++i)
    results.emplace_back(call.out_types[i], plan.strided_out >> i & 1 ? gap : 0);
  for (Tensor& tensor : operands) in_buffers.push_back(tensor.buffer());
  for (Tensor& tensor : results) out_buffers.push_back(tensor.buffer());
  Tensor workspace({DType::u8, {plan.workspace_bytes + 64}});
  std::vector<Tensor> scratch;
  for (int i = 0; i < pool.num_threads(); ++i) {
    scratch.emplace_back(ir::Type{DType::u8, {plan.scratch_bytes + 64}});
    // What an earlier kernel left: reading before writing shows as NaN.
    std::memset(scratch.back().data(), 0xff, static_cast<size_t>(plan.scratch_bytes));
  }
  std::memset(workspace.data(), 0xff, static_cast<size_t>(plan.workspace_bytes));
  for (size_t phase = 0; phase < plan.grid.size(); ++phase)
    pool.parallel_for(plan.grid[phase], [&](int64_t begin, int64_t end, int worker) {
      plan.run({static_cast<int>(phase), begin, end, in_buffers.data(), out_buffers.data(),
                scratch[static_cast<size_t>(worker)].data(), workspace.data(), plan.state.get()});
    });
  return results;
}

// Kernels of the row that run on this machine and accept the call.
inline std::vector<const ir::CpuKernel*> usable_kernels(const Call& call) {
  std::vector<const ir::CpuKernel*> usable;
  for (const auto& kernel : call.op->cpu)
    if (kernel.isa <= active_isa() && (!kernel.accepts || kernel.accepts(call.instance()).empty()))
      usable.push_back(&kernel);
  return usable;
}

// Largest difference over the largest value of the tensor; infinity where one side alone is NaN or
// where infinities differ.
inline double relative_error(const std::vector<double>& got, const std::vector<double>& wanted) {
  if (got.size() != wanted.size()) return INFINITY;
  double error = 0, largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) || std::isnan(wanted[i]) || std::isinf(wanted[i])) {
      if (std::isnan(got[i]) != std::isnan(wanted[i])) return INFINITY;
      if (std::isinf(wanted[i]) && got[i] != wanted[i]) return INFINITY;
      continue;
    }
    error = std::max(error, std::abs(got[i] - wanted[i]));
    largest = std::max(largest, std::abs(wanted[i]));
  }
  return error == 0 ? 0 : error / std::max(largest, 1e-30);
}

}  // namespace rhea::testing
