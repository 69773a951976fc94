// Names of the same tensor in native checkpoints and in published files: one table, read in both
// directions.
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

struct MappedKey {
  std::string name;
  bool permuted = false;
};

// Empty when no rule covers the name.
std::optional<MappedKey> to_hf(std::span<const KeyRule> rules, std::string_view native);
std::optional<MappedKey> to_native(std::span<const KeyRule> rules, std::string_view hf);

}  // namespace rhea::models
