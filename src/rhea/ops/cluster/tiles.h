// The compiled body of a cluster and the primitives that move and round tiles.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "rhea/base/dtype.h"
#include "rhea/ir/cpu_kernel.h"
#include "rhea/ir/op_def.h"
#include "rhea/ops/row_sums.h"

namespace rhea::ops {

// One set per instruction set. `n` elements, any alignment; tiles are f32.
struct TilePrimitives {
  // Tile of n elements of a type (f32, bf16, f16, bool as 0 and 1). Those at `next` are loaded
  // after it and fetched meanwhile; nothing to foresee: `from`.
  void (*load)(DType dtype, const void* from, float* tile, int64_t n, const void* next);
  void (*store)(DType dtype, const float* tile, void* to, int64_t n);
  // To the nearest number of the type, in place; and to memory as well.
  void (*round)(DType dtype, float* tile, int64_t n);
  void (*round_and_store)(DType dtype, float* tile, void* to, int64_t n);
  void (*fill)(float* tile, float value, int64_t n);
};
const TilePrimitives& tile_primitives(Isa isa);

// Where a step finds or leaves a value.
struct TilePlace {
  // A tile in scratch; the memory of an operand or result at the tile; an operand from its
  // beginning; a sum over rows.
  enum class Kind : uint8_t { slot, operand, result, whole_operand, sum };
  Kind kind = Kind::slot;
  int index = 0;
  bool numbers = false;  // operand, result: one number per row
};

// What a step makes.
struct TileTarget {
  TilePlace place;
  DType dtype = DType::f32;
  bool numbers = false;
  int result = -1;   // stored to this result of the cluster, unless made there
  bool read = true;  // by a later step; what is only stored is rounded on the way
};

struct TileStep {
  enum class Kind : uint8_t { load, spread, spread_rows, fill, op, rows };
  Kind kind = Kind::op;
  std::array<TileTarget, 3> to;
  int num_to = 1;
  std::array<TilePlace, 4> from = {};
  int num_from = 0;
  int operand = -1;                // load, spread: of the cluster
  int64_t repeat = 1, period = 1;  // spread
  float value = 0;                 // fill
  ir::TileFn tile = nullptr;       // op
  const ir::Attrs* attrs = nullptr;
  ir::RowPlan rows;  // rows
};

struct ClusterPlan {
  // Elements of a tile and of one item of the grid. A tile of rows holds one row at least and, of
  // short rows, as many as still leave the tiles of a usual cluster in the first-level cache; those
  // of the longest rows stay in the second-level cache.
  static constexpr int64_t kTile = 1024, kRowsTile = 2048, kItem = 16384;

  const TilePrimitives* primitives = nullptr;
  std::vector<TileStep> once;   // the same for all tiles: fills, vectors of the row ops
  std::vector<TileStep> steps;  // for each tile
  std::vector<ir::Attrs> attrs;
  std::vector<DType> operand_dtypes;
  // Operand or result i is read or written tile by tile: as a whole, or as numbers of rows.
  enum class Extent : uint8_t { other, whole, numbers };
  std::vector<Extent> operands, results;
  int64_t count = 0;     // elements of the space
  int64_t row = 1;       // elements of one row of dim 0
  bool in_rows = false;  // tiles are whole rows of the last dim
  int64_t width = 1;     // elements of such a row
  int64_t tile = kTile, item = kItem;
  int num_slots = 0;
  int64_t slot = kTile;  // elements of a slot
  RowSums sums;
  std::vector<int> sum_results;  // the result that sum i is
};

// The plan of a body for an instruction set.
std::shared_ptr<ClusterPlan> compile_cluster(const ir::OpInstance& op, Isa isa);
ir::KernelPlan plan_cluster(const ir::OpInstance& op, Isa isa);

}  // namespace rhea::ops
