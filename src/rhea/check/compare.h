// Two graphs that should compute the same, run on equal inputs and compared with each other and
// with the definition in f64.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rhea/base/thread_pool.h"
#include "rhea/check/check.h"
#include "rhea/check/numbers.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/ir/graph.h"
#include "rhea/nn/trace.h"

namespace rhea::check {

using Tensors = std::map<std::string, Tensor>;

// A graph with values for its inputs, and how it is compiled. Gradients of `parameters`, outputs
// "d <fqn>", are compared part by part.
struct Side {
  ir::Graph graph;
  Tensors inputs;
  std::vector<nn::Parameter> parameters;
  exec::cpu::CompileOptions options;
};

struct Question {
  Side stock, other;
  DType dtype = DType::f32;
  bool exact = false;  // pure movement of data or rotation: not a bit may differ in f32
  bool timed = false;  // both sides are run often enough to say how long they take
  double max_reference_flops = kMaxReferenceFlops;  // of the f64 reference of stock
};

// One result or gradient. `error`s are relative differences from the f64 reference.
struct TensorAnswer {
  std::string name;
  ir::Type type;
  Difference difference;  // of the other from stock
  std::optional<double> stock_error, other_error;
  double absolute_error = 0;  // of the other, from f64 or else from stock
  std::string fault;          // empty: within the tolerance
};

struct Answer {
  std::vector<TensorAnswer> tensors;
  UlpHistogram ulps;                // other against stock
  std::vector<std::string> faults;  // besides those of tensors: other names or types, other bits
  bool has_reference = false;
  std::string no_reference;  // why: "it takes 300 GFLOP, more than the 250 of ..."
  // It is the flops, whose bound the user sets; else the memory.
  bool too_many_flops = false;
  double stock_seconds = 0, other_seconds = 0;  // timed questions only
  std::vector<std::string> other_kernels;       // "op kernel" that ran, each once
  bool good() const;
};

// 1e-5 in f32 and 1e-2 in bf16; 0 in f32 for an exact question, against stock then.
double tolerance(const Question& question);

// Runs both sides. A tensor is within the tolerance where the other's error against f64 (its
// difference from stock where there is no reference) is at most the tolerance, or not worse than
// one and a half times the error of stock itself; a gradient also where it is off by no more than
// the rounding of the part's largest one, which is what is left where terms of that size cancel.
Answer compare(const Question& question, ThreadPool& pool);

}  // namespace rhea::check
