// Names of the same tensor in native checkpoints and in published files: one table for loading and
// for export, which both start from the native name.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rhea::models {

// "{}" stands for a layer number. `permuted`: rows of each head are half split in the file and
// adjacent pairs here (the q and k projections of llama3); see half_split_rows in
// components/checkpoint/key_map.h.
struct KeyRule {
  std::string_view native;
  std::string_view hf;
  bool permuted = false;
};

struct PublishedKey {
  std::string name;
  bool permuted = false;
};

// Empty when no rule covers the name.
std::optional<PublishedKey> to_hf(std::span<const KeyRule> rules, std::string_view native);

}  // namespace rhea::models
