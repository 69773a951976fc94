// A file of tests/data/golden/ops: named tensors as numbers.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "rhea/components/safetensors/reader.h"

namespace rhea::testing {

class GoldenFile {
 public:
  explicit GoldenFile(const std::string& name)
      : file_(std::filesystem::path(RHEA_SOURCE_DIR) / "tests/data/golden/ops" /
              (name + ".safetensors")) {}
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  const std::vector<int64_t>& shape(const std::string& name) const { return file_.at(name).shape; }
  std::vector<double> values(const std::string& name) const {
    const safetensors::TensorView& tensor = file_.at(name);
    if (tensor.dtype != safetensors::ElementType::I64)
      return safetensors::read_vector<double>(tensor);
    const auto integers = safetensors::read_vector<int64_t>(tensor);
    return {integers.begin(), integers.end()};
  }
  DType dtype(const std::string& name) const {
    return file_.at(name).dtype == safetensors::ElementType::BF16 ? DType::bf16 : DType::f32;
  }

 private:
  safetensors::File file_;
};

}  // namespace rhea::testing
