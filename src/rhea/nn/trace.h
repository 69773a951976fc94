// What modules see while they trace themselves into a graph: scopes, parameters, the batch.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/config/config.h"
#include "rhea/ir/graph.h"
#include "rhea/nn/init.h"
#include "rhea/nn/rope_tables.h"
#include "rhea/nn/stored_block.h"
#include "rhea/ops/table.h"

namespace rhea::nn {

using ir::Shape;
using ir::Value;

// A stock part of a parameter under a name of its own: rows [row_begin, row_end) of dim 0, or a
// block. Checkpoints, key maps and initialisation see parts; graphs, gradients and the optimizer
// see the whole.
struct ParameterPart {
  std::string fqn;                     // in checkpoints
  int64_t row_begin = 0, row_end = 0;  // of the parameter
  Init init;                           // how its elements start
  Shape shape = {};                    // in checkpoints; empty: that of the rows
  // Where the part lies, when it is no run of rows.
  std::optional<StoredBlock> block = {};
};

// The share of a parameter that one token uses: `used` of `of` experts.
struct TokenShare {
  int64_t used = 1, of = 1;  // both at least 1
};

// A tensor of the model as the graph stores it.
struct Parameter {
  std::string fqn;                   // name of the graph input
  Shape shape;                       // as it is stored
  std::vector<ParameterPart> parts;  // one with the parameter's own name when it is not fused
  TokenShare share = {};             // for counts of active parameters and FLOPs
};

// Shape of a part in checkpoints.
Shape checkpoint_shape(const Parameter& parameter, const ParameterPart& part);

// Generation: `num_tokens` new tokens follow `start` tokens that a cache of seq_len rows holds.
inline constexpr std::string_view kCacheStart = "cache.start";  // i32 []

// What a model is traced for.
struct TraceOptions {
  int64_t num_tokens = 0;            // T = rows * seq_len
  int64_t seq_len = 0;               // S
  DType param_dtype = DType::f32;    // training.dtype: how parameters are stored
  DType compute_dtype = DType::f32;  // mixed_precision_param: what the model computes in
  // Generation with a key-value cache: num_tokens may be any number up to seq_len.
  bool cached = false;
  // Training: the load of experts is counted for what balances it.
  bool counts_load = false;
  // Slot k of token t goes to expert (t K + k) mod E, whatever the router says; the weights are
  // those that it gives to these experts.
  bool force_load_balance = false;
};

// For limits of a module, in its forward(), as of an op, in its infer.
using ops::require_at_most;
using ops::require_multiple;

// Names of graph inputs that are not parameters.
// i32 [T]
inline constexpr std::string_view kTokens = "batch.tokens";
// i32 [T], restart at 0 at each document
inline constexpr std::string_view kPositions = "batch.positions";
// i32 [T], -100 = ignored
inline constexpr std::string_view kLabels = "batch.labels";
// i32 [T], 1 = a token, 0 = padding; only where load is counted
inline constexpr std::string_view kIsToken = "batch.is_token";
// f32 [], 1 / valid labels of the whole global batch
inline constexpr std::string_view kLossScale = "batch.loss_scale";

// A call of a module: its config, the values among its arguments and what it returned.
struct ModuleCall {
  const Config* module = nullptr;         // its config
  std::vector<Value> arguments, results;  // those that are values
};

// The graph of a model in the making, with what modules declare while they trace themselves.
class Trace {
 public:
  // `graph` must outlive it; the inputs of the batch are added to it.
  Trace(ir::Graph& graph, const TraceOptions& options);

  // What nodes are added to.
  ir::Graph& graph() { return graph_; }
  // As they were given.
  const TraceOptions& options() const { return options_; }
  // The batch, i32 [T].
  Value tokens() const { return tokens_; }
  Value positions() const { return positions_; }

  // Parameter `name` of the module whose scope is open, in the compute dtype. Asked for again under
  // the same FQN (tied weights) it is the same value; another shape is an error.
  Value parameter(std::string_view name, Shape shape, const Init& init);
  // A run of rows of a fused parameter.
  struct PartSpec {
    std::string name;  // below the scope
    int64_t rows;      // of dim 0
    Init init;         // how they start
    Shape shape = {};  // in checkpoints; empty: `rows` and the parameter's other dims
  };
  // A parameter that is `parts` one after the other along dim 0.
  Value parameter(std::string_view name, Shape shape, const std::vector<PartSpec>& parts,
                  TokenShare share = {});
  // A stock tensor, or rows of one, in a parameter that stores it in another order.
  struct BlockSpec {
    std::string name;   // of the stock tensor, below the scope
    Shape stock_shape;  // all of it
    Init init;          // how its elements start
    StoredBlock block;  // where it lies: stored_in()
  };
  // A parameter that `parts` fill. Throws Error where one lies outside of it or they leave gaps.
  Value parameter(std::string_view name, Shape shape, const std::vector<BlockSpec>& parts,
                  TokenShare share = {});

  // A tensor of the checkpoint that is never trained: no gradient, no optimizer state, f32 in every
  // run, and no parameter where parameters are counted.
  Value constant(std::string_view name, Shape shape, const Init& init);

  // The constant `bias` [E] of the open scope follows the load of a step: before the optimizer's
  // update, with n[e] the tokens that chose expert e in all microbatches (padding left out), it
  // moves by d - mean(d), d[e] = coeff * sign(mean(n) - n[e]). `experts_Tk` are the choices of this
  // microbatch. Without TraceOptions::counts_load nothing is done.
  void balance(std::string_view bias, double coeff, Value experts_Tk);
  // A call of balance().
  struct Balance {
    std::string bias;  // FQN of the constant
    double coeff = 0;  // of the step, before the mean is taken off
    Value counts_E;    // i32, of this microbatch
  };

  // Says that the layer whose scope is open has an adapter, parameters lora_a.weight [rank, in] and
  // lora_b.weight [out, rank] below it, which adds alpha / rank times their product to its weight
  // ([in, out] when `transposed`).
  void add_adapter(int64_t rank, double alpha, bool transposed);
  // A call of add_adapter().
  struct Adapter {
    std::string module;       // FQN of the layer
    int64_t rank = 0;         // of the two matrices
    double alpha = 0;         // over rank: the factor of their product
    bool transposed = false;  // the layer's weight is [in, out]
  };

  // Marks a value that `rhea score` writes as "<kind>.<layer>", by the layer whose scope is open.
  void observe(std::string_view kind, Value value);
  // A call of observe().
  struct Observed {
    std::string kind, scope;  // of the value, of the layer
    Value value;              // as it was given
  };

  // Every call of a module from now on is appended to `calls` (nn::call); null ends it.
  void record_calls(std::vector<ModuleCall>* calls) { calls_ = calls; }
  std::vector<ModuleCall>* calls() const { return calls_; }

  // Tables of a rotary embedding.
  struct Tables {
    Value cos_SP, sin_SP;  // f32 [S, pairs]
  };
  // The tables of a spec as graph inputs rope.<i>.cos / .sin; equal specs share one pair.
  Tables rope_tables(const RopeSpec& spec);

  // Generation only. The rows of `cache.<scope>.<name>` [S, heads, dim], a graph input that is
  // updated in place with the new rows, and the position of the first new row.
  Value cached(std::string_view name, Value rows_TKH);
  Value cache_start() const { return cache_start_; }
  // Generation only: what a recurrence keeps from one token to the next, graph input
  // `cache.<scope>.<name>`, 0 at position 0; and what it keeps then.
  Value state(std::string_view name, const ir::Type& type);
  void update_state(std::string_view name, Value value);

  // What was declared, in the order of the calls.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Parameter>& constants() const { return constants_; }
  const std::vector<Balance>& balances() const { return balances_; }
  const std::vector<Adapter>& adapters() const { return adapters_; }
  const std::vector<Observed>& observed() const { return observed_; }
  // Things about the model that its user should hear of, each once.
  void note(std::string text);
  const std::vector<std::string>& notes() const { return notes_; }

  // The specs behind rope.<i>.
  const std::vector<RopeSpec>& rope_specs() const { return rope_specs_; }
  // "rope.0.cos"
  static std::string rope_input(size_t index, std::string_view kind);
  // The graph input of a parameter (its storage, before the cast).
  Value parameter_input(const Parameter& parameter) const;

 private:
  std::string fqn(std::string_view name) const;
  Value declare(Parameter parameter);

  ir::Graph& graph_;
  TraceOptions options_;
  Value tokens_, positions_, cache_start_;
  std::vector<Parameter> parameters_, constants_;
  std::vector<Balance> balances_;
  std::vector<Adapter> adapters_;
  std::vector<Observed> observed_;
  std::map<std::string, Value, std::less<>> compute_;  // FQN -> value in the compute dtype
  std::vector<ModuleCall>* calls_ = nullptr;
  std::vector<RopeSpec> rope_specs_;
  std::vector<Tables> rope_tables_;
  std::vector<std::string> notes_;
};

}  // namespace rhea::nn
