// A tensor as a checkpoint sees it: a canonical name and memory of this process.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/dtype.h"

namespace rhea::checkpoint {

// `name` is the canonical FQN of a parameter, or `optimizer.state.{fqn}.{exp_avg,...}`. A part of a
// fused parameter is a tensor of its own whose rows lie scattered in the fused one: row i (of the
// first dim) is at row `rows[i]` from `data`. Empty `rows`: contiguous.
struct NamedTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  void* data = nullptr;
  std::vector<int64_t> rows = {};

  int64_t num_elements() const;
  int64_t num_bytes() const { return num_elements() * dtype_size(dtype); }
};

// True for `optimizer.*`; everything else is model.
bool is_optimizer_state(std::string_view name);

// The parts wq, wk, wv of a fused projection [K * (N/K + 2) * H, D] (for each of K key-value
// groups: N/K query heads, the key head, the value head; H rows each) or of its optimizer state.
// `fused` is also [...] without D for a bias. Names are those given, in that order.
std::vector<NamedTensor> split_fused_qkv(const NamedTensor& fused, int64_t num_heads,
                                         int64_t num_kv_heads, int64_t head_dim,
                                         const std::string& wq, const std::string& wk,
                                         const std::string& wv);

// State of other components as JSON texts, by the part that owns it: "train_state", "lr_scheduler",
// "dataloader", "rng", "config", "mesh", "versions".
using StateMap = std::map<std::string, std::string>;

}  // namespace rhea::checkpoint
