// Evaluation in f64 of one large node as several smaller ones at the same time.
#pragma once
#include <optional>

#include "rhea/ops/factors.h"

namespace rhea {
class ThreadPool;
}

namespace rhea::ops {

// A node cut along a letter of its shard cell that every result has: blocks are joined, and nothing
// is added up in another order.
struct NodeBlocks {
  Factors factors;
  char letter = 0;
  int64_t units = 1;            // equal parts that each dim of the letter consists of
  std::vector<NodePart> parts;  // each of one unit or more

  // What parts[i] has of a dim of `size`.
  DimRange range(size_t i, int64_t size) const;
};

// How a node is cut for that many threads; none where it is evaluated whole: it is small, has no
// reference, no letter to cut along, or infer knows no such parts.
std::optional<NodeBlocks> cut_into_blocks(const ir::OpInstance& op, double flops, int threads);

// Bytes that evaluate_blocks() takes beside operands and results: every thread has a copy of what
// is not cut, and one block.
double bytes_of_copies(const NodeBlocks& blocks, int threads);

// The bits of the node's reference. Throws what the reference throws.
std::vector<Tensor> evaluate_blocks(const ir::OpInstance& op, const NodeBlocks& blocks,
                                    std::span<const Tensor> inputs, ThreadPool& pool);

// ---- what evaluation of whole nodes shares with this
// Bytes of tensors of these types in f64.
double f64_bytes(std::span<const ir::Type> types);
// The results of the row's reference cell. Throws Error where it has none: what has a decomposition
// instead is not asked. The pool is for the few rows that are not cut and name parts of their work.
std::vector<Tensor> by_reference(const ir::OpInstance& op, std::span<const Tensor> inputs,
                                 ThreadPool* pool = nullptr);

}  // namespace rhea::ops
