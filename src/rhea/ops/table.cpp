// The op table: the rows that come with the library, one a line, and what plugins add to them.
#include "rhea/ops/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "rhea/base/error.h"
#include "rhea/base/text.h"
#include "rhea/ops/barrier/optimization_barrier.h"
#include "rhea/ops/cluster/cluster.h"
#include "rhea/ops/delta/delta.h"
#include "rhea/ops/float8/float8.h"
#include "rhea/ops/grouped/grouped.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/plan_kernel.h"
#include "rhea/ops/route/route.h"

namespace rhea::ops {
namespace {

constexpr const OpDef* kRows[] = {
    &ir::kInput,
    &ir::kConstant,
    &kAdd,
    &kSubtract,
    &kMultiply,
    &kDivide,
    &kMaximum,
    &kMinimum,
    &kPower,
    &kNegate,
    &kExponential,
    &kLog,
    &kSqrt,
    &kRsqrt,
    &kTanh,
    &kLogistic,
    &kAbs,
    &kSign,
    &kSine,
    &kCosine,
    &kErf,
    &kCompare,
    &kSelect,
    &kConvert,
    &kStopGradient,
    &kOptimizationBarrier,
    &kBroadcastInDim,
    &kReshape,
    &kTranspose,
    &kSlice,
    &kConcatenate,
    &kPad,
    &kIota,
    &kReduceSum,
    &kReduceMax,
    &kSilu,
    &kGelu,
    &kSoftmax,
    &kLogSumExp,
    &kTopK,
    &kTakeLast,
    &kPutLast,
    &kExpertOrder,
    &kDispatch,
    &kCombine,
    &kSlotDots,
    &kRmsNorm,
    &kRmsNormGrad,
    &kLayerNorm,
    &kLayerNormGrad,
    &kSwiglu,
    &kSwigluGrad,
    &kRope,
    &kAttention,
    &kAttentionGrad,
    &kDynamicUpdateSlice,
    &kAttentionCached,
    &kDotGeneral,
    &kWeightGradSquares,
    &kWeightGradAdd,
    &kRoundFloat8,
    &kFloat8Linear,
    &kCausalConv,
    &kCausalConvGrad,
    &kGatedDeltaRule,
    &kGatedDeltaRuleGrad,
    &kGroupedProduct,
    &kGroupedWeightGrad,
    &kPack,
    &kEmbedding,
    &kEmbeddingGrad,
    &kCrossEntropy,
    &kCrossEntropyGrad,
    &kLinearCrossEntropy,
    &kLinearCrossEntropyGrad,
    &kGlobalNorm,
    &kAdam,
    &kAdamPack,
    &kSgd,
    &kCluster,
};

bool is_word(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

void check_kernel(const ir::CpuKernel& kernel, std::string_view op, std::string_view origin) {
  if (kernel.name.empty())
    throw Error("{}: a kernel of op '{}' has no name, by which logs and reports know it", origin,
                op);
  if (!kernel.plan)
    throw Error("{}: kernel '{}' of op '{}' lacks plan, which says how a node is run", origin,
                kernel.name, op);
}

void check_row(const OpDef& row, std::string_view origin) {
  if (!is_word(row.name))
    throw Error("{}: op '{}': a name has letters a-z, digits and underscores only", origin,
                row.name);
  if (&row == &ir::kInput) return;  // no computation
  if (!row.infer)
    throw Error("{}: op '{}' lacks infer, which gives the types of its results", origin, row.name);
  if (!row.decompose && !row.reference && row.cpu.empty())
    throw Error("{}: op '{}' lacks a definition: give a decomposition, a reference or a kernel",
                origin, row.name);
  if (!row.cost && !row.decompose)
    throw Error(
        "{}: op '{}' must state its cost or its decomposition: FLOPs, plans of memory and "
        "recomputation are counted from them",
        origin, row.name);
  for (const ir::CpuKernel& kernel : row.cpu) check_kernel(kernel, row.name, origin);
}

class Table {
 public:
  Table() {
    for (const OpDef* row : kRows) add(*row, kInTree);
  }

  void add(const OpDef& row, std::string_view origin) {
    check_row(row, origin);
    if (const OpDef* known = find(row.name)) {
      throw Error("{}: op '{}' is already registered by {}; give it another name", origin, row.name,
                  origins_.at(known));
    }
    rows_.push_back(&row);
    index_.emplace(row.name, &row);
    origins_.emplace(&row, origin);
  }

  void add(std::string_view op, ir::CpuKernel kernel, std::string_view origin) {
    const OpDef* row = find(op);
    if (row == nullptr) {
      throw Error("{}: kernel '{}' is for op '{}', which does not exist; the nearest is '{}'",
                  origin, kernel.name, op, nearest(op));
    }
    check_kernel(kernel, op, origin);
    auto& added = kernels_[row];
    for (const AddedKernel& other : added) {
      if (other.kernel.name != kernel.name) continue;
      throw Error("{}: op '{}' already has a kernel '{}', from {}; give it another name", origin,
                  op, kernel.name, other.origin);
    }
    for (const ir::CpuKernel& own : row->cpu) {
      if (own.name == kernel.name)
        throw Error("{}: op '{}' already has a kernel '{}', from {}; give it another name", origin,
                    op, kernel.name, origins_.at(row));
    }
    added.push_back({std::move(kernel), std::string(origin)});
  }

  const OpDef* find(std::string_view name) const {
    const auto at = index_.find(name);
    return at == index_.end() ? nullptr : at->second;
  }
  std::span<const OpDef* const> rows() const { return rows_; }
  std::span<const AddedKernel> kernels(const OpDef& op) const {
    if (kernels_.empty()) return {};
    const auto at = kernels_.find(&op);
    return at == kernels_.end() ? std::span<const AddedKernel>() : at->second;
  }
  std::string_view origin(const OpDef& op) const {
    const auto at = origins_.find(&op);
    return at == origins_.end() ? std::string_view() : at->second;
  }

 private:
  std::string_view nearest(std::string_view name) const {
    return (*std::ranges::min_element(
                rows_, {}, [&](const OpDef* row) { return edit_distance(row->name, name); }))
        ->name;
  }

  std::vector<const OpDef*> rows_;
  std::unordered_map<std::string_view, const OpDef*> index_;
  std::unordered_map<const OpDef*, std::string> origins_;
  std::unordered_map<const OpDef*, std::vector<AddedKernel>> kernels_;
};

Table& table() {
  static Table made;
  return made;
}

// State of a SimpleKernel: what `run` is told about its node.
struct NodeCopy {
  const OpDef* op;
  std::vector<ir::Type> in, out;
  ir::Attrs attrs;
  void (*run)(const ir::KernelArgs&, const ir::OpInstance&);
};

void run_simple(const ir::KernelArgs& args) {
  const auto& node = *static_cast<const NodeCopy*>(args.state);
  node.run(args, {node.op, node.in, node.out, &node.attrs});
}

}  // namespace

std::span<const OpDef* const> all_ops() { return table().rows(); }
const OpDef* find_op(std::string_view name) { return table().find(name); }

void add_op(const OpDef& row, std::string_view origin) { table().add(row, origin); }
void add_cpu_kernel(std::string_view op, ir::CpuKernel kernel, std::string_view origin) {
  table().add(op, std::move(kernel), origin);
}
std::span<const AddedKernel> added_kernels(const OpDef& op) { return table().kernels(op); }
std::string_view origin_of(const OpDef& op) { return table().origin(op); }

ScopedAdditions::ScopedAdditions() : before_(std::make_shared<const Table>(table())) {}
ScopedAdditions::~ScopedAdditions() { table() = *static_cast<const Table*>(before_.get()); }

bool has_added_kernel(const ir::OpInstance& node, Isa isa) {
  return std::ranges::any_of(added_kernels(*node.op), [&](const AddedKernel& added) {
    return refusal(added.kernel, node, isa).empty();
  });
}

std::vector<const OpDef*> outside_ops() {
  std::vector<const OpDef*> rows;
  for (const OpDef* row : all_ops()) {
    if (origin_of(*row) != kInTree) rows.push_back(row);
  }
  return rows;
}

ir::CpuKernel to_cpu_kernel(SimpleKernel kernel) {
  if (kernel.run == nullptr)
    throw Error("kernel '{}' lacks run, the function that computes its items", kernel.name);
  return {.name = kernel.name,
          .isa = kernel.isa,
          .accepts = std::move(kernel.accepts),
          .plan = [items = std::move(kernel.items), run = kernel.run](const ir::OpInstance& node) {
            ir::KernelPlan plan;
            plan.grid = {items ? items(node) : 1};
            plan.state =
                std::make_shared<const NodeCopy>(NodeCopy{node.op,
                                                          {node.in.begin(), node.in.end()},
                                                          {node.out.begin(), node.out.end()},
                                                          *node.attrs,
                                                          run});
            plan.run = run_simple;
            return plan;
          }};
}

void require_multiple(std::string_view who, std::string_view what, int64_t value, int64_t of) {
  if (value % of != 0)
    throw Error("{} requires a {} that is a multiple of {}, got {}", who, what, of, value);
}

void require_at_most(std::string_view who, std::string_view what, int64_t value, int64_t limit) {
  if (value > limit) throw Error("{} requires a {} of at most {}, got {}", who, what, limit, value);
}

}  // namespace rhea::ops
