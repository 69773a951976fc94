// One row of the op table.
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/ir/attr.h"
#include "rhea/ir/cpu_kernel.h"
#include "rhea/ir/row_op.h"
#include "rhea/ir/type.h"

namespace rhea::ir {

class Graph;
struct Value;

// The types of an attribute: integer (and flag), real, text, list of integers, dtype.
enum class AttrKind : uint8_t { i64, f64, str, list, dtype };
// An attribute that an op has.
struct AttrSpec {
  std::string_view name;         // a literal
  AttrKind kind;                 // what its value must be
  std::optional<Attr> fallback;  // absent: the attribute is required
};

// Reverse mode. `cotangents[i]` belongs to output i and is empty (Value::valid() false) when it is
// zero. Returns one cotangent for each input, empty where the input has no gradient (integers, or
// none flows).
struct VjpArgs {
  Graph& graph;                       // to add the backward nodes to
  const Attrs& attrs;                 // of the node
  std::span<const Value> inputs;      // operands of the node
  std::span<const Value> outputs;     // its results
  std::span<const Value> cotangents;  // one per result
};

// Plain evaluation in f64: every tensor is a row-major vector of doubles (integers and flags too).
// No rounding to the types in between: this is what kernels are compared with.
struct ReferenceArgs {
  std::span<const std::vector<double>> in;  // one per operand
  std::span<std::vector<double>> out;       // sized by the caller
  std::span<const Type> in_types;           // of the operands
  std::span<const Type> out_types;          // of the results
  const Attrs& attrs;                       // of the node
};

// flops: multiply and add count as two. bytes: memory traffic when nothing is fused (operands read
// + results written).
struct Cost {
  double flops = 0;  // operations
  double bytes = 0;  // read and written
};

// How one operand of a sample is filled, from a counter RNG keyed by sample and operand.
struct SampleInput {
  Type type;                   // of the operand
  double low = -1, high = 1;   // floats: uniform in [low, high); integers: uniform in [low, high]
  std::vector<double> values;  // given: exactly these elements
};
// One case that the contract test runs an op on.
struct Sample {
  std::string name;                 // of the case, in messages
  std::vector<SampleInput> inputs;  // one per operand
  Attrs attrs;                      // of the node
  double tolerance_scale =
      1;  // times the tolerance of the dtype; a value other than 1 needs a reason beside it
  bool check_vjp = true;  // off where the function is not differentiable at the sample
};

// An elementwise function over f32 values: out[i] = f(in[0][i], in[1][i], ...) for i < n. n need
// not be a multiple of any width; buffers hold up to round_up(n, 16) elements, are 64-byte aligned,
// and `out` may equal an input.
using TileFn = void (*)(int64_t n, const float* const* in, float* out, const Attrs& attrs);

// Only `name`, `infer` and one of {decompose, reference} are required. A null cell falls back to
// the decomposition.
struct OpDef {
  std::string_view name;        // what graphs and plugins call the op; a literal
  std::vector<AttrSpec> attrs;  // those that it has; others are errors
  // Types in -> types out; throws Error naming both shapes. Graph::add prefixes op, FQN and source
  // line.
  std::function<std::vector<Type>(std::span<const Type>, const Attrs&)> infer;
  // The same function built from simpler ops, one value per result.
  std::function<std::vector<Value>(Graph&, std::span<const Value>, const Attrs&)> decompose;
  // Null: the vjp of the decomposition.
  std::function<std::vector<Value>(const VjpArgs&)> vjp;
  // Factors: one letter per dim of each operand and result, "td,d->td". A factor present in the
  // operands only is reduced (its split leaves a partial sum); one marked by a preceding '!' must
  // not be split; '1' is a dim of size 1.
  std::function<std::string(const OpInstance&)> shard;
  std::vector<CpuKernel> cpu;                         // fastest first, the last accepts everything
  std::function<std::string(const OpInstance&)> hlo;  // StableHLO text
  std::function<Cost(const OpInstance&)> cost;        // null: one flop per output element
  std::function<std::vector<Sample>()> samples;       // what the contract test runs
  // The values in f64; several threads may call it at once. Null: those of the decomposition.
  std::function<void(const ReferenceArgs&)> reference;
  // Elementwise ops: one function per instruction set (index Isa), null entries fall back to a
  // lower one. Such ops can be fused into clusters; values of bf16/f16 type are rounded to their
  // type after each op, so fusing changes no bit.
  std::array<TileFn, 4> tile = {};
  // Ops over the last dim: the kernel of an instruction set on tiles of whole rows, by which such
  // ops, too, can be fused into clusters. Null: the op never runs so.
  std::function<RowPlan(const OpInstance&, Isa)> rows;
  bool has_side_effect = false;  // never removed or merged
};

}  // namespace rhea::ir
