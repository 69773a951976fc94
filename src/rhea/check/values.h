// Values for the inputs of a part: the same for both sides, wherever a name and its use are the
// same.
#pragma once
#include <span>

#include "rhea/check/compare.h"
#include "rhea/nn/rope_tables.h"

namespace rhea::check {

// What the inputs of a graph are, besides arguments and cotangents.
struct InputKinds {
  std::span<const nn::Parameter> parameters, constants;
  std::span<const nn::RopeSpec> rope_specs;
  int64_t seq_len = 1;
  int64_t vocab_size = 1;
};

// From a whole parameter to one of its parts in the stock layout, and back.
void copy_part(const nn::Parameter& parameter, const nn::ParameterPart& part, const Tensor& whole,
               Tensor& stock);
void copy_part_back(const nn::Parameter& parameter, const nn::ParameterPart& part,
                    const Tensor& stock, Tensor& whole);

// Adds values for every input of `graph` that `inputs` has none for, rounded to the input's type:
// parameters by the names of their parts (so that a module that stores them otherwise gets the same
// weights), rotary tables as in a run, positions that restart at rows and at a document border
// inside each, tokens below the vocabulary; everything else uniform by its name.
void fill_inputs(const ir::Graph& graph, const InputKinds& kinds, Tensors& inputs);

}  // namespace rhea::check
