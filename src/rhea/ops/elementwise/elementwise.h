// How an elementwise row is made: one function per number kind, everything else follows.
#pragma once
#include <array>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "rhea/ir/graph.h"
#include "rhea/ops/elementwise/tiles.h"

namespace rhea::ops {

// Types an operation accepts.
enum class Numbers { floats, signed_numbers, numbers, any };

struct ElementwiseSpec {
  std::string_view name;
  int num_operands = 1;
  Numbers accepts = Numbers::floats;
  std::vector<ir::AttrSpec> attrs;
  // f64 tensors and the reference; the operands of one element.
  double (*f64)(const double* x, const ir::Attrs& attrs) = nullptr;
  // Integer and bool tensors; null where the op takes floats only.
  int64_t (*integer)(const int64_t* x, const ir::Attrs& attrs) = nullptr;
  std::array<ir::TileFn, 4> tile = {};
  // Null: all operands and the result have one type.
  std::function<std::vector<ir::Type>(std::span<const ir::Type>, const ir::Attrs&)> infer;
  std::function<std::vector<ir::Value>(ir::Graph&, std::span<const ir::Value>, const ir::Attrs&)>
      decompose;
  std::function<std::vector<ir::Value>(const ir::VjpArgs&)> vjp;
  double flops = 1;
  // Ranges of the sample operands, where the function is smooth.
  std::vector<std::pair<double, double>> ranges;
  ir::Attrs sample_attrs;
  bool smooth = true;  // false: vjp is not compared with differences
};

ir::OpDef elementwise_row(ElementwiseSpec spec);

// The kernel list of an elementwise row, for rows that are made by hand.
std::vector<ir::CpuKernel> elementwise_kernels(const ElementwiseSpec& spec);
// Samples of all shapes and types that the spec accepts.
std::vector<ir::Sample> elementwise_samples(const ElementwiseSpec& spec);

}  // namespace rhea::ops
