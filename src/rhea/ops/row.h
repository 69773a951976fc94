// Helpers for writing rows of the op table: checks for infer, sharding letters, costs, samples.
#pragma once
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/ir/graph.h"
#include "rhea/ir/op_def.h"

namespace rhea::ops {

// Shapes are plain vectors, so argument-dependent lookup does not find these.
using ir::byte_size;
using ir::num_elements;
using ir::Shape;
using ir::to_string;

// ---- infer
// Throws unless there are exactly `count` operands (named in the message), all row-major.
void expect_operands(std::span<const ir::Type> in, std::initializer_list<std::string_view> names);
// Throws unless all operands have one shape and dtype; the message has both types.
void expect_same_types(std::span<const ir::Type> in);
// Throws unless the type of operand `name` is floating point.
void expect_float(const ir::Type& type, std::string_view name);
// Throws unless `dims` are ascending, distinct and within the rank.
void expect_ascending_dims(const std::vector<int64_t>& dims, int64_t rank, std::string_view name);
// Row stride of a contiguous tensor: elements of one row, 0 for a scalar.
int64_t contiguous_row_stride(const Shape& shape);

// ---- shard
// Letters for `rank` dims, beginning with `first`: "abc".
std::string shard_letters(int64_t rank, char first = 'a');
// All operands and results have the same dims: "ab,ab->ab".
std::string shard_elementwise(const ir::OpInstance& op);
// One operand and a result of its rank; dims whose size changes stay whole: "a!b->a!c".
std::string shard_equal_dims(const ir::OpInstance& op);

// ---- cost
// Bytes of all operands and results.
double operand_and_result_bytes(const ir::OpInstance& op);
// A cost function for `flops` operations per element of the first result.
std::function<ir::Cost(const ir::OpInstance&)> cost_per_element(double flops);

// ---- samples
// An operand of random numbers in [low, high), of integers up to `high`.
ir::SampleInput uniform(DType dtype, Shape shape, double low = -1, double high = 1);
// An operand of these elements.
ir::SampleInput values(DType dtype, Shape shape, std::vector<double> elements);
// NaN, infinities, signed zeros, subnormals and ordinary numbers, for tests of propagation.
const std::vector<double>& special_values();

// ---- vjp and decompose
// bf16 and f16 as f32 (formulas of several ops lose less in f32), others as they are.
ir::Value widen(ir::Value x);
// Zeros of the type.
ir::Value zeros(ir::Graph& graph, ir::Type type);
// x over the shape of its operand before the last dim was reduced: [.., ] -> [.., n].
ir::Value broadcast_last(ir::Value x, int64_t n);

}  // namespace rhea::ops
