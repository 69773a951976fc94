// Weights of a Hugging Face folder under the names that the model has for them, however the folder
// spells them: without the prefix of the base model, experts one by one or joined, in few bits.
#pragma once
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhea/components/checkpoint/quantized.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea::checkpoint {

// Another spelling of the names of experts and their router: Mixtral's
// `block_sparse_moe.experts.0.w1` and `mlp.experts.0.gate_proj`. Empty when there is none.
std::string other_spelling(std::string_view name);

// "model.layers.0.mlp.experts.3.up_proj.weight" is half 1 of expert 3 in
// "model.layers.0.mlp.experts.gate_up_proj" [experts, 2 rows, columns].
struct ExpertName {
  std::string joined;
  int64_t expert = 0;
  int part = 0;       // of `num_parts`, one after the other in each expert
  int num_parts = 1;  // 2: gate_up_proj, 1: down_proj
};
std::optional<ExpertName> parse_expert(std::string_view name);

// The first dotted word that most of `names` begin with, with its dot ("model."); empty when none
// does: what a file of the base model leaves out.
std::string base_prefix(std::span<const std::string> names);

// One published tensor as it is stored: pieces one after the other.
struct StoredForm {
  struct Piece {
    CodedTensor coded;
    // Of a plain tensor, elements [first, first + count) when it stands for more than the piece.
    std::optional<std::pair<int64_t, int64_t>> range = {};
    int64_t num_elements = 0;
  };
  std::vector<int64_t> shape;
  std::vector<Piece> pieces;
};

class StoredWeights {
 public:
  // `names`: what the model asks for. Throws Error as safetensors::Weights and read_quantization
  // do.
  StoredWeights(const std::filesystem::path& folder, std::span<const std::string> names);

  const safetensors::Weights& weights() const { return weights_; }
  // Nothing when the folder has it under no spelling. Throws Error for codes without scales and for
  // experts of unequal shapes.
  std::optional<StoredForm> find(const std::string& name) const;
  // The plain tensor under `name` or its name without prefix; null when there is none.
  const safetensors::TensorView* plain(const std::string& name) const;
  // The name that this folder has for a plain tensor.
  std::string spelled(const std::string& name) const;

  // The whole tensor, converted. Lets go of the pages that were read.
  void read(const StoredForm& tensor, DType dtype, std::span<std::byte> out) const;

 private:
  CodedTensor coded(const std::string& name) const;
  void read_plain(const safetensors::TensorView& tensor, std::pair<int64_t, int64_t> range,
                  DType dtype, std::span<std::byte> out) const;
  std::optional<StoredForm> from_joined(const std::string& name) const;
  std::optional<StoredForm> from_experts(const std::string& name) const;

  safetensors::Weights weights_;
  QuantizationConfig quantization_;
  std::string dropped_prefix_;  // the folder's names lack it
};

}  // namespace rhea::checkpoint
