// flock on the folder.
#include "rhea/components/checkpoint/folder_claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "rhea/base/error.h"

namespace rhea::checkpoint {

FolderClaim::FolderClaim(const std::filesystem::path& folder) {
  const auto refuse = [&](const std::string& reason) {
    throw Error(
        "checkpoints cannot be saved to {}: {}; choose another --dump_folder or "
        "--checkpoint.folder",
        folder.string(), reason);
  };
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) refuse(error.message());
  if (::access(folder.c_str(), W_OK | X_OK) != 0) refuse(std::strerror(errno));
  fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ < 0) refuse(std::strerror(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(std::exchange(fd_, -1));
    refuse("another run that has not ended saves there");
  }
}

FolderClaim::~FolderClaim() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace rhea::checkpoint
