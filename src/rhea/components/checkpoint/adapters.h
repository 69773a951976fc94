// LoRA adapters of a model: in native checkpoints, and merged into the weights they belong to.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/dtype.h"
#include "rhea/components/checkpoint/key_map.h"
#include "rhea/components/checkpoint/named_tensor.h"
#include "rhea/components/checkpoint/step_reader.h"

namespace rhea::checkpoint {

// True for the tensors of an adapter: <module>.lora_a.weight and <module>.lora_b.weight.
bool is_adapter(std::string_view name);

// Name of the matrix A (else B) of the adapter of `module`.
std::string adapter_name(std::string_view module, bool is_a);

// The adapters by the weight that each belongs to, with the memory of their two matrices.
class AdapterSet {
 public:
  // Throws Error where `tensors` lack a matrix of one of `adapters`, or have one of another rank.
  AdapterSet(std::span<const Adapter> adapters, std::span<const NamedTensor> tensors);

  struct Entry {
    Adapter adapter;
    NamedTensor a, b;  // [rank, in], [out, rank]
  };
  const std::vector<Entry>& entries() const { return entries_; }
  // Nothing where the tensor has no adapter.
  std::optional<Entry> of_weight(std::string_view name) const;

 private:
  std::vector<Entry> entries_;
};

// Throws Error unless the matrices fit a weight of this shape: [out, in], or [in, out] when the
// adapter says transposed.
void require_fit(const AdapterSet::Entry& entry, std::span<const int64_t> weight_shape);

// weight += alpha / rank * B A, summed in f32 and rounded once to the dtype of `weight`, which
// require_fit() must accept.
void merge_adapter(const AdapterSet::Entry& entry, const NamedTensor& weight);

// The tensors of `adapters`, read whole into memory of their own.
class StoredAdapters {
 public:
  // The adapters that the checkpoint of `reader` holds; none where it is of a plain model.
  explicit StoredAdapters(const StepReader& reader);
  const AdapterSet& set() const { return *set_; }
  std::span<const NamedTensor> tensors() const { return tensors_; }

 private:
  std::vector<std::vector<std::byte>> memory_;
  std::vector<NamedTensor> tensors_;
  std::optional<AdapterSet> set_;
};

// Adapters as text, for the manifest of a checkpoint: "adapters" of its state.
std::string adapters_text(std::span<const Adapter> adapters);
// Throws Error naming `source` where the text is no such list.
std::vector<Adapter> read_adapters(const std::string& text, const std::string& source);

}  // namespace rhea::checkpoint
