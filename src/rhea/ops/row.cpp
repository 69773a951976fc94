// Helpers of op rows.
#include "rhea/ops/row.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <limits>
#include <numeric>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {

using ir::Cost;
using ir::OpInstance;
using ir::SampleInput;
using ir::Type;

void expect_operands(std::span<const Type> in, std::initializer_list<std::string_view> names) {
  if (in.size() != names.size()) {
    throw Error("takes {} operands ({}), got {}", names.size(),
                fmt::join(names.begin(), names.end(), ", "), in.size());
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].layout != ir::Layout::row_major)
      throw Error("operand '{}' must be row-major, got {}", names.begin()[i], to_string(in[i]));
  }
}

void expect_same_types(std::span<const Type> in) {
  for (const Type& type : in) {
    if (type != in[0]) {
      throw Error(
          "operands must have one type, got {} and {} (shapes are not broadcast: use "
          "broadcast_in_dim or convert)",
          to_string(in[0]), to_string(type));
    }
  }
}

void expect_float(const Type& type, std::string_view name) {
  if (!is_float(type.dtype))
    throw Error("operand '{}' must be floating point, got {}", name, to_string(type));
}

void expect_ascending_dims(const std::vector<int64_t>& dims, int64_t rank, std::string_view name) {
  int64_t last = -1;
  for (const int64_t dim : dims) {
    if (dim <= last || dim >= rank) {
      throw Error("{} must be ascending and between 0 and {}, got [{}]", name, rank - 1,
                  fmt::join(dims, ","));
    }
    last = dim;
  }
}

int64_t contiguous_row_stride(const Shape& shape) {
  if (shape.empty()) return 0;
  return std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
}

std::string shard_letters(int64_t rank, char first) {
  std::string text;
  for (int64_t i = 0; i < rank; ++i) text += static_cast<char>(first + i);
  return text;
}

std::string shard_elementwise(const OpInstance& op) {
  const std::string dims = shard_letters(op.out[0].rank());
  std::string text;
  for (size_t i = 0; i < op.in.size(); ++i) text += (i == 0 ? "" : ",") + dims;
  text += "->";
  for (size_t i = 0; i < op.out.size(); ++i) text += (i == 0 ? "" : ",") + dims;
  return text;
}

std::string shard_equal_dims(const ir::OpInstance& op) {
  std::string operand, result;
  char letter = 'a';
  for (size_t d = 0; d < op.in[0].shape.size(); ++d) {
    if (op.in[0].shape[d] == op.out[0].shape[d]) {
      operand += letter;
      result += letter++;
    } else {
      (operand += '!') += letter++;
      (result += '!') += letter++;
    }
  }
  return operand + "->" + result;
}

double operand_and_result_bytes(const OpInstance& op) {
  double bytes = 0;
  for (const Type& type : op.in) bytes += static_cast<double>(byte_size(type));
  for (const Type& type : op.out) bytes += static_cast<double>(byte_size(type));
  return bytes;
}

std::function<Cost(const OpInstance&)> cost_per_element(double flops) {
  return [flops](const OpInstance& op) {
    return Cost{flops * static_cast<double>(num_elements(op.out[0].shape)),
                operand_and_result_bytes(op)};
  };
}

SampleInput uniform(DType dtype, Shape shape, double low, double high) {
  return {.type = {dtype, std::move(shape)}, .low = low, .high = high};
}

SampleInput values(DType dtype, Shape shape, std::vector<double> elements) {
  return {.type = {dtype, std::move(shape)}, .values = std::move(elements)};
}

const std::vector<double>& special_values() {
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  static const std::vector<double> list = {nan, inf,   -inf, 0.0,    -0.0,  1.0, -1.0, 2.0,  -2.0,
                                           0.5, -0.25, 1e-3, -1e-40, 1e-40, 3.0, 80.0, -80.0};
  return list;
}

Value widen(Value x) {
  return x.dtype() == DType::bf16 || x.dtype() == DType::f16 ? convert(x, DType::f32) : x;
}

Value zeros(ir::Graph& graph, Type type) { return graph.constant(0, std::move(type)); }

Value broadcast_last(Value x, int64_t n) {
  Shape shape = x.shape();
  std::vector<int64_t> dims(shape.size());
  std::iota(dims.begin(), dims.end(), int64_t{0});
  shape.push_back(n);
  return broadcast_in_dim(x, std::move(shape), std::move(dims));
}

}  // namespace rhea::ops
