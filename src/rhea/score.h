// rhea score: logits, loss and gradients of a published model on given tokens, to compare with
// Transformers.
#pragma once
#include <filesystem>

#include "rhea/base/dtype.h"
#include "rhea/base/thread_pool.h"

namespace rhea {

struct ScoreOptions {
  std::filesystem::path model;   // folder with config.json and safetensors
  std::filesystem::path input;   // input_ids [B,T] int64; optional labels [B,T] (shifted, -100
                                 // ignored), position_ids [B,T]
  std::filesystem::path output;  // logits [B,T,V] f32, loss [] f32, grad.<name> as the weight
  bool gradients = false;
  DType dtype = DType::f32;  // compute dtype, and that of the weights in memory where no gradients
                             // are asked for; gradients, and weights that have some, are f32
};

// Throws Error naming file, tensor and what is wrong with it.
void score(const ScoreOptions& options, ThreadPool& pool);

}  // namespace rhea
