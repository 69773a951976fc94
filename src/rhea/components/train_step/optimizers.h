// Update rules by name: the table behind `optimizer_name` of a param group.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/named_table.h"
#include "rhea/config/sections/optimizer.h"
#include "rhea/ir/graph.h"

namespace rhea::train_step {

using ir::Value;

// One parameter in the update graph. p, g and state have the dtypes in which they are stored, f32
// or bf16, and the shape of the parameter.
struct UpdateInputs {
  ir::Graph& graph;          // the graph that the update is traced into
  Value p, g;                // g as backward made it, before it is clipped
  std::vector<Value> state;  // in the order of Optimizer::state
  Value clip, lr;            // f32 []
  Value step;                // i64 [], counts from 1

  // The same in f32; the gradient clipped.
  Value weight() const;
  Value gradient() const;
  Value state_value(size_t i) const;
  // A number f32 [] in the shape of p.
  Value spread(Value number) const;
};

// Reports a bad argument: its name, its value as text, what is wrong.
using Refuse =
    std::function<void(std::string_view argument, std::string value, std::string reason)>;

// A row of the table.
struct Optimizer {
  std::string name;  // in optimizer_name
  // What is set here are the arguments that it takes, with their defaults; lr is always one. Those
  // that OptimizerKwargs has no field for: "name=value" in `more`.
  OptimizerKwargs defaults;
  // Names of the state tensors of a parameter, under which checkpoints hold them; each has the
  // parameter's shape, and starts as zeros. `kwargs` has the defaults filled in, here and below.
  std::function<std::vector<std::string>(const OptimizerKwargs& kwargs)> state;
  // The new parameter, then the new state in the order of state(). What comes in f32 is rounded to
  // the stored dtype.
  std::function<std::vector<Value>(const UpdateInputs& in, const OptimizerKwargs& kwargs)> update;
  // Rules between values; may be empty.
  std::function<void(const OptimizerKwargs& kwargs, const Refuse& refuse)> check = {};
};

// AdamW, Adam, SGD and what modules add, each with state, update and a default of lr.
NamedTable<Optimizer>& optimizers();

// The number of "name=value" in kwargs.more. Throws Error where it is not there or no number.
double more_number(const OptimizerKwargs& kwargs, std::string_view name);

}  // namespace rhea::train_step
