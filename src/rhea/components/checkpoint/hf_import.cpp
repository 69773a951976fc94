// Hugging Face weights into native parameters.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "rhea/base/error.h"
#include "rhea/components/checkpoint/fp8_blocks.h"
#include "rhea/components/checkpoint/hf_rows.h"
#include "rhea/components/checkpoint/hf_weights.h"
#include "rhea/components/checkpoint/key_report.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea::checkpoint {
namespace {

using safetensors::TensorView;
using safetensors::Weights;

class Import {
 public:
  Import(const std::filesystem::path& folder, const KeyMap& key_map)
      : weights_(folder), key_map_(key_map), block_size_(fp8_block_size(folder)) {}

  // Compares before anything is written into a target.
  void compare(std::span<const NamedTensor> targets) {
    KeyReport report;
    bool head_missing = false;
    for (const NamedTensor& target : targets) {
      const auto parts = key_map_.to_hf(target.name, target.shape);
      if (parts.empty()) report.missing.push_back(target.name + " (has no Hugging Face key)");
      for (const HfPart& part : parts) {
        const TensorView* tensor = weights_.find(part.name);
        if (tensor == nullptr) {
          report.missing.push_back(part.name);
          head_missing = head_missing || part.name == key_map_.head;
          continue;
        }
        used_.insert(part.name);
        if (is_fp8(*tensor)) used_.insert(scale_name(part.name));
        if (tensor->shape != part.shape || !safetensors::convertible(tensor->dtype, target.dtype)) {
          report.unequal.push_back(
              fmt::format("{}: {} in the file, {} [{}] in the model", part.name, tensor->describe(),
                          dtype_name(target.dtype), fmt::join(part.shape, ", ")));
        }
      }
    }
    check_tied_copies();
    for (const std::string& name : weights_.names()) {
      if (!used_.contains(name) && !(key_map_.ignorable && key_map_.ignorable(name)))
        report.unexpected.push_back(name);
    }
    report.raise(weights_.path().string(),
                 head_missing ? "Tying the head to the embedding (tie_word_embeddings) would do "
                                "without the head's key."
                              : "");
  }

  void read(const NamedTensor& target) {
    const auto parts = key_map_.to_hf(target.name, target.shape);
    if (parts.size() == 1 && parts[0].rows.empty()) {
      read_part(parts[0], target.dtype, target.writable_bytes());
      return;
    }
    const std::span<std::byte> whole = target.writable_bytes();
    int64_t filled = 0;
    for (const HfPart& part : parts) {
      const HfRows rows(part, target.name, target.num_bytes(), dtype_size(target.dtype));
      std::vector<std::byte> bytes(static_cast<size_t>(rows.num_rows * rows.row_bytes));
      read_part(part, target.dtype, bytes);
      rows.for_each(part, [&](int64_t hf, int64_t native) {
        std::memcpy(whole.data() + native * rows.row_bytes, bytes.data() + hf * rows.row_bytes,
                    static_cast<size_t>(rows.row_bytes));
      });
      filled += rows.num_rows * rows.row_bytes;
    }
    if (filled != target.num_bytes())
      throw Error("key map: the parts of '{}' hold {} of its {} bytes", target.name, filled,
                  target.num_bytes());
  }

  int num_quantized() const { return num_quantized_; }

 private:
  void read_part(const HfPart& part, DType dtype, std::span<std::byte> out) {
    const TensorView& tensor = weights_.at(part.name);
    if (!is_fp8(tensor)) return safetensors::read_as(tensor, dtype, out);
    ++num_quantized_;
    const TensorView* scale = weights_.find(scale_name(part.name));
    if (scale == nullptr)
      throw Error("{}: '{}' is {} but '{}' is not there", weights_.path().string(), part.name,
                  tensor.describe(), scale_name(part.name));
    dequantize_fp8_blocks(tensor, *scale, block_size_, dtype, out);
  }

  void check_tied_copies() {
    for (const auto& [copy, original] : key_map_.tied) {
      const TensorView* a = weights_.find(copy);
      const TensorView* b = weights_.find(original);
      if (a == nullptr || b == nullptr || used_.contains(copy)) continue;
      used_.insert(copy);
      if (a->dtype == b->dtype && a->shape == b->shape &&
          std::equal(a->bytes.begin(), a->bytes.end(), b->bytes.begin(), b->bytes.end()))
        continue;
      throw Error(
          "{}: '{}' and '{}' differ, but the model ties them; untie it (tie_word_embeddings false) "
          "to keep both",
          weights_.path().string(), copy, original);
    }
  }

  Weights weights_;
  const KeyMap& key_map_;
  int64_t block_size_;
  std::set<std::string> used_;
  int num_quantized_ = 0;
};

}  // namespace

int import_hf(const std::filesystem::path& folder, const KeyMap& key_map,
              std::span<const NamedTensor> targets) {
  Import import(folder, key_map);
  import.compare(targets);
  for (const NamedTensor& target : targets) import.read(target);
  return import.num_quantized();
}

}  // namespace rhea::checkpoint
