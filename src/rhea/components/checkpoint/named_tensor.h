// A tensor as a checkpoint sees it: a canonical name and memory of this process.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/dtype.h"

namespace rhea::checkpoint {

// `name` is the canonical FQN of a parameter, or `optimizer.state.{fqn}.{exp_avg,...}`. The stock
// parts of a fused parameter are tensors of their own that point into it: a checkpoint does not
// know whether a run fuses. Row-major.
struct NamedTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  void* data = nullptr;

  int64_t num_elements() const {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    return count;
  }
  int64_t num_bytes() const { return num_elements() * dtype_size(dtype); }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(data), static_cast<size_t>(num_bytes())};
  }
  std::span<std::byte> writable_bytes() const {
    return {static_cast<std::byte*>(data), static_cast<size_t>(num_bytes())};
  }
};

// True for `optimizer.*`; everything else is model.
inline bool is_optimizer_state(std::string_view name) { return name.starts_with("optimizer."); }

// State of other components as JSON texts, by the part that owns it: "train_state", "lr_scheduler",
// "dataloader", "rng", "config", "overrides", "converters", "base_model", "mesh", "versions".
using StateMap = std::map<std::string, std::string>;

}  // namespace rhea::checkpoint
