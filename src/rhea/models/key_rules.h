// Names of the same tensor in native checkpoints and in published files: one table for loading and
// for export, which both start from the native name.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rhea::models {

// How the file holds a native tensor.
enum class KeyForm {
  same,
  // Rows of each head are half split in the file and adjacent pairs here (the q and k projections
  // of llama3); see half_split_rows in components/checkpoint/key_map.h.
  permuted,
  // One tensor for each index of dim 0, whose number is `kSliceNumber` in the name: experts.
  sliced,
  // Not at all. The name is the one of models/hf for it.
  absent,
};
// Where a sliced name has its number.
inline constexpr std::string_view kSliceNumber = "[]";

// "{}" stands for a layer number.
struct KeyRule {
  std::string_view native;       // "layers.{}.attention.wq.weight"
  std::string_view hf;           // "model.layers.{}.self_attn.q_proj.weight"
  KeyForm form = KeyForm::same;  // how the file holds it
};

// What a rule makes of one name.
struct PublishedKey {
  std::string name;              // in the file
  KeyForm form = KeyForm::same;  // how the file holds it

  std::string slice(int64_t i) const;  // the name with the number in it
};

// Empty when no rule covers the name.
std::optional<PublishedKey> to_hf(std::span<const KeyRule> rules, std::string_view native);

}  // namespace rhea::models
