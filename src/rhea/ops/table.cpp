// The op table: one line per row. A row is found by its name here and nowhere else.
#include <array>
#include <string>
#include <unordered_map>

#include "rhea/ops/barrier/optimization_barrier.h"
#include "rhea/ops/cluster/cluster.h"
#include "rhea/ops/delta/delta.h"
#include "rhea/ops/grouped/grouped.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/route/route.h"

namespace rhea::ops {
namespace {

const std::array kTable = {
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

}  // namespace

std::span<const OpDef* const> all_ops() { return kTable; }

const OpDef* find_op(std::string_view name) {
  static const std::unordered_map<std::string_view, const OpDef*> index = [] {
    std::unordered_map<std::string_view, const OpDef*> made;
    for (const OpDef* op : kTable) made.emplace(op->name, op);
    return made;
  }();
  const auto at = index.find(name);
  return at == index.end() ? nullptr : at->second;
}

}  // namespace rhea::ops
