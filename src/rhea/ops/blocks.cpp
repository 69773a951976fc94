#include "rhea/ops/blocks.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "rhea/base/error.h"
#include "rhea/base/thread_pool.h"
#include "rhea/ir/row_cells.h"
#include "rhea/ops/for_each.h"
#include "rhea/ops/loss/loss.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {

using ir::num_elements;
namespace {

constexpr double kLargeNode = 1e7;  // flops from which blocks are worth their copies
constexpr int64_t kBlocksOfAThread = 4;

// Rows that no letter cuts, whose references can give parts of their work away.
struct InParts {
  const ir::OpDef* op;
  void (*reference)(const ir::ReferenceArgs&, const ForEach&);
};
constexpr InParts kInParts[] = {{&kLinearCrossEntropy, linear_cross_entropy_reference},
                                {&kLinearCrossEntropyGrad, linear_cross_entropy_reference}};

// The letter that gives enough blocks with the fewest copies; `units` is 1 where there is none.
NodeBlocks best_cut(const ir::OpInstance& op, Factors factors, int64_t enough) {
  NodeBlocks best;
  if (!fits(factors, op.in, op.out)) return best;  // a wrong cell from outside
  std::tuple<int64_t, double> best_rank;
  for (const char letter : factors.out[0]) {
    if (factors.whole.contains(letter)) continue;
    const auto times = [&](const std::string& dims) { return std::ranges::count(dims, letter); };
    const bool joins = std::ranges::all_of(
        factors.out, [](auto n) { return n == 1; }, times);
    const bool cuts = std::ranges::all_of(
        factors.in, [](auto n) { return n <= 1; }, times);
    if (!joins || !cuts) continue;
    int64_t units = 0;  // gcd(0, n) is n
    double copied = 0;
    const auto count = [&](const std::vector<std::string>& dims, std::span<const ir::Type> types) {
      for (size_t i = 0; i < types.size(); ++i) {
        const size_t d = dims[i].find(letter);
        if (d == std::string::npos)
          copied += f64_bytes({&types[i], 1});
        else
          units = std::gcd(units, types[i].shape[d]);
      }
    };
    count(factors.in, op.in);
    count(factors.out, op.out);
    const std::tuple rank(std::min(units, enough), -copied);
    if (units < 2 || (best.units > 1 && rank <= best_rank)) continue;
    best.letter = letter;
    best.units = units;
    best_rank = rank;
  }
  best.factors = std::move(factors);
  return best;
}

std::vector<Tensor> zeros_of(std::span<const ir::Type> types) {
  std::vector<Tensor> made;
  for (const ir::Type& type : types)
    made.emplace_back(static_cast<size_t>(num_elements(type.shape)), 0.0);
  return made;
}

// Evaluates one part. `operands` are the thread's own: empty, or those of its part before.
void evaluate_part(const ir::OpInstance& op, const NodeBlocks& blocks, size_t i,
                   std::span<const Tensor> inputs, std::vector<Tensor>& operands,
                   std::vector<Tensor>& results) {
  const NodePart& part = blocks.parts[i];
  const bool is_first = operands.empty();
  operands.resize(inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    const size_t dim = blocks.factors.in[k].find(blocks.letter);
    if (dim == std::string::npos) {
      if (is_first) operands[k] = inputs[k];
      continue;
    }
    const ir::Shape& shape = op.in[k].shape;
    const auto [begin, end] = blocks.range(i, shape[dim]);
    Tensor().swap(operands[k]);  // never two parts at a time
    operands[k] = cut(inputs[k], shape, dim, begin, end);
  }
  const auto made = by_reference({op.op, part.in, part.out, &part.attrs}, operands);
  for (size_t r = 0; r < made.size(); ++r) {
    const ir::Shape& shape = op.out[r].shape;
    const size_t dim = blocks.factors.out[r].find(blocks.letter);
    const auto [begin, end] = blocks.range(i, shape[dim]);
    paste(made[r], shape, dim, begin, end, results[r]);
  }
}

}  // namespace

DimRange NodeBlocks::range(size_t i, int64_t size) const {
  const auto count = static_cast<int64_t>(parts.size()), at = static_cast<int64_t>(i);
  const int64_t unit = size / units;
  return {units * at / count * unit, units * (at + 1) / count * unit};
}

std::optional<NodeBlocks> cut_into_blocks(const ir::OpInstance& op, double flops, int threads) {
  if (threads < 2 || flops < kLargeNode || !op.op->reference || !op.op->shard || op.out.empty())
    return std::nullopt;
  const int64_t enough = kBlocksOfAThread * threads;
  NodeBlocks blocks = best_cut(op, parse_factors(op.op->shard(op)), enough);
  if (blocks.units < 2) return std::nullopt;
  blocks.parts.resize(static_cast<size_t>(std::min(blocks.units, enough)));
  try {
    for (size_t i = 0; i < blocks.parts.size(); ++i) {
      NodePart& part = blocks.parts[i];
      part = part_along(op, blocks.factors, blocks.letter,
                        [&](int64_t size) { return blocks.range(i, size); });
      if (op.op->infer(part.in, part.attrs) != part.out) return std::nullopt;
    }
  } catch (...) {
    return std::nullopt;  // infer of the row refuses a part with attributes of the whole
  }
  return blocks;
}

double bytes_of_copies(const NodeBlocks& blocks, int threads) {
  double largest = 0;  // of one thread
  for (const NodePart& part : blocks.parts)
    largest = std::max(largest, f64_bytes(part.in) + f64_bytes(part.out));
  return std::min(static_cast<double>(threads), static_cast<double>(blocks.parts.size())) * largest;
}

std::vector<Tensor> evaluate_blocks(const ir::OpInstance& op, const NodeBlocks& blocks,
                                    std::span<const Tensor> inputs, ThreadPool& pool) {
  std::vector<Tensor> results = zeros_of(op.out);
  // Operands of a call lie in one row, so what is not cut is copied: once for each thread.
  std::vector<std::vector<Tensor>> operands(static_cast<size_t>(pool.num_threads()));
  pool.parallel_for(static_cast<int64_t>(blocks.parts.size()),
                    [&](int64_t begin, int64_t end, int worker) {
                      for (int64_t i = begin; i < end; ++i)
                        evaluate_part(op, blocks, static_cast<size_t>(i), inputs,
                                      operands[static_cast<size_t>(worker)], results);
                    });
  return results;
}

double f64_bytes(std::span<const ir::Type> types) {
  double bytes = 0;
  for (const ir::Type& type : types)
    bytes += static_cast<double>(sizeof(double)) * static_cast<double>(num_elements(type.shape));
  return bytes;
}

std::vector<Tensor> by_reference(const ir::OpInstance& op, std::span<const Tensor> inputs,
                                 ThreadPool* pool) {
  if (!op.op->reference) throw Error("{}: has neither reference nor decomposition", op.op->name);
  std::vector<Tensor> results = zeros_of(op.out);
  const ir::ReferenceArgs args{inputs, results, op.in, op.out, *op.attrs};
  const auto* in_parts = std::ranges::find(kInParts, op.op, &InParts::op);
  if (pool == nullptr || in_parts == std::end(kInParts)) {
    ir::call_reference(*op.op, args);
  } else {
    in_parts->reference(args, [pool](int64_t count, const std::function<void(int64_t)>& f) {
      pool->parallel_for(count, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) f(i);
      });
    });
  }
  return results;
}

}  // namespace rhea::ops
