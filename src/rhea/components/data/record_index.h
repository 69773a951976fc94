// Where each record of a file begins and ends, so that any one can be read without the others.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "rhea/base/mapped_file.h"
#include "rhea/components/data/record.h"

namespace rhea::data {

struct RecordPlace {
  uint64_t begin = 0;  // bytes in the file
  uint64_t end = 0;
  uint64_t line = 0;  // of the first byte, from 1
};

class RecordIndex {
 public:
  // Indexes `file` (the map of `path`). Files from kCachedFrom bytes on are indexed once for all
  // processes of the machine that share `folder`: the first one writes the index there, the others
  // wait for it and map it. Empty folder: in memory.
  RecordIndex(const std::filesystem::path& path, const MappedFile& file, RecordKind kind,
              const std::filesystem::path& folder);

  static constexpr uint64_t kCachedFrom = 16 << 20;

  size_t size() const { return places_.size(); }
  // Throws Error when the index on disk was damaged after it was written.
  const RecordPlace& operator[](size_t i) const;

 private:
  bool map_cache(const std::filesystem::path& cache, uint64_t file_size);

  std::vector<RecordPlace> built_;
  MappedFile cache_;
  std::filesystem::path cache_path_;
  uint64_t file_size_ = 0;
  std::span<const RecordPlace> places_;
};

}  // namespace rhea::data
