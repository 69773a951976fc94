// Writing one native step folder.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/output_folder.h"
#include "rhea/components/checkpoint/manifest.h"
#include "rhea/components/checkpoint/named_tensor.h"
#include "rhea/components/checkpoint/step_folder.h"

namespace rhea::checkpoint {

// Throws ExitError with non_finite that names tensor, element and value when a float tensor holds
// NaN or an infinity.
void require_finite(const NamedTensor& tensor);

struct StepContent {
  int64_t step = 0;
  Manifest::Kind kind = Manifest::Kind::full;
  std::span<const NamedTensor> tensors;
  StateMap state;
  // Tensors are stored in this dtype (see checkpoint::export_dtype); none: as they are.
  std::optional<DType> export_dtype;
  std::map<std::string, std::string> files = {};  // texts beside the data, by name
  Existing existing = Existing::replace;
  std::string_view full_disk_remedy = kCheckpointRemedy;
};

// Bytes that write_step needs on the disk.
uint64_t bytes_needed(const StepContent& content);
// Writes data and manifest as folder `path`, atomically, after checking the space. Throws without a
// trace left on the disk: ExitError out_of_memory when the disk is too small, non_finite for
// weights that are not finite, Error for the rest.
void write_step(const std::filesystem::path& path, const StepContent& content);

// A copy of tensors that does not change while it is written.
class Snapshot {
 public:
  // Copies; the memory of the snapshot before is used again where it suffices.
  void take(std::span<const NamedTensor> tensors);
  std::span<const NamedTensor> tensors() const { return tensors_; }

 private:
  std::vector<NamedTensor> tensors_;
  std::unique_ptr<std::byte[]> memory_;
  int64_t capacity_ = 0;
};

}  // namespace rhea::checkpoint
