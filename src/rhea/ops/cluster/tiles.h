// The compiled body of a cluster and the primitives that move and round tiles.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "rhea/base/dtype.h"
#include "rhea/ir/cpu_kernel.h"
#include "rhea/ir/op_def.h"

namespace rhea::ops {

// One set per instruction set. `n` elements, any alignment; tiles are f32.
struct TilePrimitives {
  // Tile of n elements of a type (f32, bf16, f16, bool as 0 and 1).
  void (*load)(DType dtype, const void* from, float* tile, int64_t n);
  void (*store)(DType dtype, const float* tile, void* to, int64_t n);
  // To the nearest number of the type, in place.
  void (*round)(DType dtype, float* tile, int64_t n);
  void (*fill)(float* tile, float value, int64_t n);
};
const TilePrimitives& tile_primitives(Isa isa);

// Where a step finds an operand.
struct TileSource {
  // A tile in scratch, or the memory of an f32 operand or result.
  enum class Kind : uint8_t { slot, operand, result };
  Kind kind = Kind::slot;
  int index = 0;
};

struct TileStep {
  enum class Kind : uint8_t { load, spread, fill, op };
  Kind kind = Kind::op;
  DType dtype = DType::f32;  // of the value
  TileSource to;
  int operand = -1;                // load, spread: of the cluster
  int64_t repeat = 1, period = 1;  // spread
  float value = 0;                 // fill
  ir::TileFn tile = nullptr;       // op
  const ir::Attrs* attrs = nullptr;
  std::array<TileSource, 3> from = {};
  int num_from = 0;
  int result = -1;  // stored to this result of the cluster afterwards
};

struct ClusterPlan {
  static constexpr int64_t kTile = 1024;   // elements of one slot: 4 KiB
  static constexpr int64_t kItem = 16384;  // elements of one item of the grid

  const TilePrimitives* primitives = nullptr;
  std::vector<TileStep> once;   // fills: the same for all tiles
  std::vector<TileStep> steps;  // for each tile
  std::vector<ir::Attrs> attrs;
  std::vector<DType> operand_dtypes;
  std::vector<bool> whole;  // operand i has the shape of the space
  int64_t count = 0;        // elements of the space
  int64_t row = 1;          // elements of one row (dim 0)
  int num_slots = 0;
  int num_results = 0;
};

ir::KernelPlan plan_cluster(const ir::OpInstance& op, Isa isa);

}  // namespace rhea::ops
