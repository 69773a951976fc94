#include "rhea/ops/barrier/optimization_barrier.h"

#include "rhea/ops/elementwise/elementwise.h"

namespace rhea::ops {
namespace {

ir::OpDef barrier_row() {
  ir::OpDef row = elementwise_row({
      .name = "optimization_barrier",
      .accepts = Numbers::any,
      .f64 = [](const double* x, const ir::Attrs&) { return x[0]; },
      .integer = [](const int64_t* x, const ir::Attrs&) { return x[0]; },
      .tile = RHEA_TILE_CELL(identity),
      .vjp = [](const ir::VjpArgs& args) { return std::vector<ir::Value>{args.cotangents[0]}; },
  });
  // The executor reads the operand's memory through it; inside a cluster it would be a copy.
  row.tile = {};
  row.cost = [](const ir::OpInstance&) { return ir::Cost{}; };
  return row;
}

}  // namespace

const ir::OpDef kOptimizationBarrier = barrier_row();

ir::Value optimization_barrier(ir::Value x, std::source_location where) {
  return x.graph->add1(kOptimizationBarrier, {x}, {}, where);
}

}  // namespace rhea::ops
