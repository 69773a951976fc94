#include "rhea/ops/contract/case.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rhea/base/cpu_features.h"
#include "rhea/base/error.h"
#include "rhea/base/rng.h"
#include "rhea/ops/plan_kernel.h"
#include "rhea/ops/run_kernel.h"
#include "rhea/ops/table.h"

namespace rhea::ops {
namespace {

using ir::Buffer;
using ir::KernelPlan;
using ir::num_elements;
using ir::Sample;
using ir::Type;
using Case = ContractCase;

// Largest error of a result element as a share of the largest element of the tensor; in elementwise
// rows, whose elements do not mix, of the element itself (or of 0.1, where it is smaller). A few
// roundings of the type; integers and flags are exact.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 5e-6;
    case DType::bf16:
      return 0x1p-7;  // two units in the last place
    case DType::f16:
      return 0x1p-9;  // four
    case DType::f64:
      return 1e-12;
    default:
      return 0;
  }
}
// Smallest steps of the types, which bound the error of results near zero.
double smallest_step(DType dtype) {
  return dtype == DType::f64 ? 0 : dtype == DType::f16 ? 0x1p-23 : 0x1p-130;
}
// Rows that round to a 16-bit operand type inside, so that their f32 results have its tolerance:
// rms_norm rounds x / rms to x's type before the weight, which its gradient repeats; the head
// rounds the gradient of its logits before the products.
constexpr std::string_view kRoundsInside[] = {"rms_norm_grad", "linear_cross_entropy_grad"};
// The row that sums, in f64, squares of its f32 result: the sum is no more exact than they are.
constexpr std::string_view kSumsItsResult = "weight_grad_squares";

// Place of logical element i of a tensor, in elements; packed layouts as ir/type.h describes them.
int64_t element_place(const Type& type, int64_t row_stride, int64_t i) {
  if (type.layout != ir::Layout::row_major) {
    const bool nk = type.layout == ir::Layout::panels_nk;
    const int64_t columns = type.shape.back(), rows = num_elements(type.shape) / columns;
    const int64_t free_index = nk ? i / columns : i % columns;
    const int64_t k = nk ? i % columns : i / columns;
    const int64_t reduced = round_up(nk ? columns : rows, type.dtype == DType::f32 ? 16 : 32);
    const int64_t panel = free_index / 64 * reduced * 64;
    if (type.dtype == DType::f32) return panel + k * 64 + free_index % 64;
    return panel + k / 2 * 128 + free_index % 64 * 2 + k % 2;
  }
  if (type.shape.empty()) return 0;
  int64_t row = 1;
  for (size_t d = 1; d < type.shape.size(); ++d) row *= type.shape[d];
  return i / row * row_stride + i % row;
}

int64_t row_elements(const Type& type) {
  if (type.shape.empty() || type.layout != ir::Layout::row_major) return 0;
  int64_t row = 1;
  for (size_t d = 1; d < type.shape.size(); ++d) row *= type.shape[d];
  return row;
}

double rounded(double value, DType dtype) {
  alignas(8) char element[8] = {};
  store_from_f64(element, dtype, 0, value);
  return load_as_f64(element, dtype, 0);
}

Tensor sample_values(const OpDef& op, const Sample& sample, size_t operand) {
  const ir::SampleInput& input = sample.inputs[operand];
  Tensor values = input.values;
  if (values.empty()) {
    const RngKey key = rng_key(7, fmt::format("{}/{}/{}", op.name, sample.name, operand));
    values.resize(static_cast<size_t>(num_elements(input.type.shape)));
    for (size_t i = 0; i < values.size(); ++i) {
      const double u = rng_uniform(key, i);
      values[i] = is_float(input.type.dtype)
                      ? input.low + u * (input.high - input.low)
                      : std::floor(input.low + u * (input.high - input.low + 1));
    }
  }
  if (static_cast<int64_t>(values.size()) != num_elements(input.type.shape)) {
    throw Error("op '{}', sample '{}': operand {} has {} values, but is {}", op.name, sample.name,
                operand, values.size(), to_string(input.type));
  }
  for (double& value : values) value = rounded(value, input.type.dtype);
  return values;
}

double result_tolerance(const Case& c, size_t result) {
  double allowed = tolerance(c.out[result].dtype);
  if (c.op->name == kSumsItsResult) allowed = std::max(allowed, tolerance(c.out[0].dtype));
  for (const std::string_view name : kRoundsInside) {
    if (name != c.op->name) continue;
    for (const Type& type : c.in) allowed = std::max(allowed, tolerance(type.dtype));
  }
  return allowed;
}

}  // namespace

Memory::Memory(const Type& type, int64_t extra) : type_(type) {
  stride_ = row_elements(type) + (type.shape.empty() ? 0 : extra);
  bytes_ = byte_size(type);
  if (extra > 0 && !type.shape.empty()) bytes_ = type.shape[0] * stride_ * dtype_size(type.dtype);
  data_ = aligned_bytes(bytes_ + kGuard);
  std::memset(data_.get(), 0xa5, static_cast<size_t>(bytes_ + kGuard));
  // Padding of packed layouts is zero.
  if (type.layout != ir::Layout::row_major)
    std::memset(data_.get(), 0, static_cast<size_t>(bytes_));
}

void Memory::fill(const Tensor& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    store_from_f64(data_.get(), type_.dtype, element_place(type_, stride_, static_cast<int64_t>(i)),
                   values[i]);
  }
}

Tensor Memory::read() const {
  Tensor values(static_cast<size_t>(num_elements(type_.shape)));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = load_as_f64(data_.get(), type_.dtype,
                            element_place(type_, stride_, static_cast<int64_t>(i)));
  }
  return values;
}

bool Memory::guard_is_whole() const {
  const auto* guard = static_cast<const unsigned char*>(data_.get()) + bytes_;
  return std::all_of(guard, guard + kGuard, [](unsigned char byte) { return byte == 0xa5; });
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

std::unique_ptr<Case> make_case(const OpDef& op, const Sample& sample) {
  auto made = std::make_unique<Case>();
  made->op = &op;
  made->sample = sample;
  std::vector<Value> operands;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    operands.push_back(made->graph.input(fmt::format("x{}", i), sample.inputs[i].type));
    made->in.push_back(sample.inputs[i].type);
    made->inputs.push_back(sample_values(op, sample, i));
  }
  const std::vector<Value> results = made->graph.add(op, operands, sample.attrs);
  for (size_t i = 0; i < results.size(); ++i) made->graph.output(fmt::format("y{}", i), results[i]);
  const ir::Node& node = made->graph.nodes().back();
  made->out = node.outputs;
  made->attrs = node.attrs;
  made->expected = evaluate_op(made->instance(), made->inputs);
  return made;
}

std::vector<Tensor> run_kernel(const Case& c, const KernelPlan& plan, const Layouts& layouts,
                               Findings& findings) {
  std::vector<Memory> in, out;
  for (size_t i = 0; i < c.in.size(); ++i) {
    in.emplace_back(c.in[i], static_cast<int64_t>(i) == layouts.wide_in ? 24 : 0);
    in.back().fill(c.inputs[i]);
  }
  for (size_t i = 0; i < c.out.size(); ++i)
    out.emplace_back(c.out[i], static_cast<int64_t>(i) == layouts.wide_out ? 24 : 0);
  std::vector<Buffer> in_buffers, out_buffers;
  for (const Memory& memory : in) in_buffers.push_back(memory.buffer());
  for (const Memory& memory : out) out_buffers.push_back(memory.buffer());
  if (layouts.shared.first >= 0) {
    out_buffers[static_cast<size_t>(layouts.shared.second)] =
        in_buffers[static_cast<size_t>(layouts.shared.first)];
  }
  const std::shared_ptr<void> workspace = aligned_bytes(plan.workspace_bytes);
  std::memset(workspace.get(), 0xff, static_cast<size_t>(plan.workspace_bytes));
  for (size_t phase = 0; phase < plan.grid.size(); ++phase) {
    const int64_t count = plan.grid[phase];
    // Parts in reverse order with scratch of their own: nothing may depend on who runs what when.
    for (int64_t piece = layouts.pieces; piece-- > 0;) {
      const std::shared_ptr<void> scratch = aligned_bytes(plan.scratch_bytes);
      std::memset(scratch.get(), 0xff, static_cast<size_t>(plan.scratch_bytes));
      ir::KernelArgs args;
      args.phase = static_cast<int>(phase);
      args.begin = count * piece / layouts.pieces;
      args.end = count * (piece + 1) / layouts.pieces;
      args.in = in_buffers.data();
      args.out = out_buffers.data();
      args.scratch = scratch.get();
      args.workspace = workspace.get();
      args.state = plan.state.get();
      if (args.begin < args.end) plan.run(args);
    }
  }
  for (const Memory& memory : in) findings.expect(memory.guard_is_whole(), "wrote past an operand");
  std::vector<Tensor> results;
  for (size_t i = 0; i < out.size(); ++i) {
    findings.expect(out[i].guard_is_whole(), "wrote past result {}", i);
    const bool shared = layouts.shared.second == static_cast<int>(i);
    if (!shared) {
      results.push_back(out[i].read());
      continue;
    }
    Memory view(c.out[i]);
    std::memcpy(view.buffer().data, in_buffers[static_cast<size_t>(layouts.shared.first)].data,
                static_cast<size_t>(byte_size(c.out[i])));
    results.push_back(view.read());
  }
  return results;
}

void expect_close(const Case& c, const std::vector<Tensor>& results,
                  const std::vector<Tensor>& expected, Findings& findings) {
  if (!findings.expect(results.size() == expected.size(), "{} results, expected {}", results.size(),
                       expected.size()))
    return;
  for (size_t r = 0; r < results.size(); ++r) {
    const DType dtype = c.out[r].dtype;
    if (!findings.expect(results[r].size() == expected[r].size(),
                         "result {}: {} elements, expected {}", r, results[r].size(),
                         expected[r].size()))
      return;
    const double largest = largest_of(expected[r], 0);
    const double floor = c.op->tile[0] != nullptr ? std::min(largest, 0.1) : largest;
    int failures = 0;
    for (size_t i = 0; i < results[r].size() && failures < 5; ++i) {
      const double got = results[r][i], want = expected[r][i];
      const double nearest = rounded(want, dtype);
      bool good = got == nearest || (std::isnan(got) && std::isnan(nearest));
      if (!good && std::isfinite(nearest)) {
        const double allowed =
            result_tolerance(c, r) * c.sample.tolerance_scale * std::max(std::abs(want), floor) +
            (is_float(dtype) ? smallest_step(dtype) : 0);
        good = std::abs(got - want) <= allowed;
      }
      if (!good) {
        ++failures;
        std::string operands;
        if (c.op->tile[0] != nullptr) {
          for (const Tensor& x : c.inputs) operands += fmt::format(" {}", x[i]);
        }
        findings.fail("result {} element {}: expected {}, got {}{}", r, i, want, got,
                      operands.empty() ? "" : ", operands" + operands);
      }
    }
  }
}

double largest_of(const Tensor& values, double least) {
  double largest = least;
  for (const double x : values) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  return largest;
}

std::vector<Sample> samples_of(const OpDef& op) {
  return op.samples ? op.samples() : std::vector<Sample>{};
}

std::vector<Runnable> runnable_kernels(const Case& c) {
  std::vector<Runnable> runnable;
  const auto add = [&](const ir::CpuKernel& kernel, bool added) {
    if (!refusal(kernel, c.instance(), detected_isa()).empty()) return;
    runnable.push_back({kernel.name, plan_kernel(kernel, c.instance()), added});
    make_state(runnable.back().plan, kernel.name, c.op->name);
  };
  for (const AddedKernel& added : added_kernels(*c.op)) add(added.kernel, true);
  for (const ir::CpuKernel& kernel : c.op->cpu) add(kernel, false);
  return runnable;
}

}  // namespace rhea::ops
