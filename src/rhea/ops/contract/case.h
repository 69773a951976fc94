// One sample of one row with its types, operands and expected results, and the running of a kernel
// on it: what the checks of the contract share.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rhea/ir/graph.h"
#include "rhea/ops/contract/contract.h"
#include "rhea/ops/evaluate.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {

struct ContractCase {
  const OpDef* op;
  ir::Sample sample;
  ir::Graph graph;  // holds the completed attributes and inferred types
  std::vector<ir::Type> in, out;
  ir::Attrs attrs;
  std::vector<Tensor> inputs;    // rounded to their types
  std::vector<Tensor> expected;  // by the definition, in f64

  ir::OpInstance instance() const { return {op, in, out, &attrs}; }
};
std::unique_ptr<ContractCase> make_case(const OpDef& op, const ir::Sample& sample);
std::vector<ir::Sample> samples_of(const OpDef& op);

// How a kernel is called: nothing of it may change a bit of the results.
struct Layouts {
  int64_t wide_in = -1, wide_out = -1;    // operand or result that gets wide rows
  std::pair<int, int> shared = {-1, -1};  // operand that shares its memory with a result
  int pieces = 1;                         // parts into which each grid is cut
};
std::vector<Tensor> run_kernel(const ContractCase& c, const ir::KernelPlan& plan,
                               const Layouts& layouts, Findings& findings);
// The kernels that can run the case here, each with its plan: added ones first, then the row's own.
struct Runnable {
  std::string_view name;
  ir::KernelPlan plan;
  bool added;
};
std::vector<Runnable> runnable_kernels(const ContractCase& c);

// A tensor in memory of its own, with guard bytes behind it.
class Memory {
 public:
  // `extra`: elements between one row's end and the next one's begin.
  explicit Memory(const ir::Type& type, int64_t extra = 0);
  ir::Buffer buffer() const { return {data_.get(), stride_}; }
  void fill(const Tensor& values);
  Tensor read() const;
  bool guard_is_whole() const;

 private:
  static constexpr int64_t kGuard = 256;
  ir::Type type_;
  int64_t stride_ = 0, bytes_ = 0;
  std::shared_ptr<void> data_;
};

// Equal numbers, or both NaN.
bool same_bits(const Tensor& a, const Tensor& b);
// Results against `expected` at the tolerance of their dtypes and the sample.
void expect_close(const ContractCase& c, const std::vector<Tensor>& results,
                  const std::vector<Tensor>& expected, Findings& findings);
// Largest finite magnitude, at least `least`.
double largest_of(const Tensor& values, double least);

}  // namespace rhea::ops
