#include "rhea/exec/cpu/views.h"

#include <algorithm>

#include "rhea/ir/op_def.h"

namespace rhea::exec::cpu {
namespace {

// Product of dims [from, to).
int64_t product(const ir::Shape& shape, size_t from, size_t to) {
  int64_t result = 1;
  for (size_t i = from; i < std::min(to, shape.size()); ++i) result *= shape[i];
  return result;
}

}  // namespace

bool is_pure_view(const ir::Graph& graph, const ir::Node& node) {
  const std::string_view op = node.op->name;
  if (op == "reshape" || op == "stop_gradient" || op == "optimization_barrier") return true;
  if (op != "broadcast_in_dim" && op != "transpose") return false;
  const ir::Type& operand = graph.type(node.inputs[0]);
  const ir::Type& result = node.outputs[0];
  if (ir::num_elements(operand.shape) != ir::num_elements(result.shape)) return false;
  // Equal element counts: the dims that are not 1 are the same ones; are they in the same order?
  const auto& order = node.attrs.list(op == "transpose" ? "permutation" : "dims");
  const ir::Shape& sizes = op == "transpose" ? result.shape : operand.shape;
  int64_t last = -1;
  for (size_t i = 0; i < order.size(); ++i) {
    if (sizes[i] == 1) continue;
    if (order[i] < last) return false;
    last = order[i];
  }
  return true;
}

int64_t natural_row_stride(const ir::Type& type) {
  if (type.layout != ir::Layout::row_major || type.shape.empty()) return 0;
  return product(type.shape, 1, type.shape.size());
}

std::optional<Piece> slice_piece(const ir::Type& operand, const ir::Node& slice,
                                 int64_t row_stride) {
  const auto& start = slice.attrs.list("start");
  const ir::Shape& result = slice.outputs[0].shape;
  if (operand.shape.empty() || ir::num_elements(result) == 0) return std::nullopt;
  Piece piece{start[0] * row_stride, row_stride != natural_row_stride(operand)};
  bool cut = false;
  for (size_t dim = 1; dim < result.size(); ++dim) {
    if (result[dim] == operand.shape[dim]) continue;
    if (cut || product(operand.shape, 1, dim) != 1) return std::nullopt;
    cut = true;
    piece.offset += start[dim] * product(operand.shape, dim + 1, operand.shape.size());
  }
  piece.strided = (piece.strided || cut) && result[0] > 1;
  return piece;
}

std::optional<Piece> concatenate_piece(const ir::Graph& graph, const ir::Node& concatenate,
                                       size_t i) {
  const auto dim = static_cast<size_t>(concatenate.attrs.i64("dim"));
  const ir::Shape& result = concatenate.outputs[0].shape;
  if (ir::num_elements(result) == 0) return std::nullopt;
  int64_t before = 0;
  for (size_t k = 0; k < i; ++k) before += graph.type(concatenate.inputs[k]).shape[dim];
  Piece piece{before * product(result, dim + 1, result.size()), false};
  if (product(result, 0, dim) == 1) return piece;
  if (product(result, 1, dim) != 1) return std::nullopt;
  piece.strided = true;
  return piece;
}

}  // namespace rhea::exec::cpu
