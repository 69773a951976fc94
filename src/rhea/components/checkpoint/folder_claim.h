// The right of one run to save into a folder.
#pragma once
#include <filesystem>
#include <utility>

namespace rhea::checkpoint {

// Makes the folder if it is not there. Throws Error when nothing can be written there, or when
// another run holds the claim: found at the start, not at the first save hours later. The claim is
// a lock of the system on the folder itself: it leaves no file and ends with the process, however
// that ends. File systems without such locks are taken without one.
class FolderClaim {
 public:
  FolderClaim() = default;
  explicit FolderClaim(const std::filesystem::path& folder);
  ~FolderClaim();
  FolderClaim(FolderClaim&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FolderClaim& operator=(FolderClaim&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

 private:
  int fd_ = -1;
};

}  // namespace rhea::checkpoint
