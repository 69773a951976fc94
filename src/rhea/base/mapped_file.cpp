// Memory maps and whole-file helpers.
#include "rhea/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "rhea/base/error.h"
#include "rhea/base/output_file.h"

namespace rhea {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Without O_NONBLOCK the open of a pipe waits for somebody who writes to it.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) throw Error("cannot open {}: {}", path.string(), std::strerror(errno));
  struct stat info {};
  if (::fstat(file.fd, &info) != 0)
    throw Error("cannot stat {}: {}", path.string(), std::strerror(errno));
  if (!S_ISREG(info.st_mode)) throw Error("{} is not a regular file", path.string());
  size_ = static_cast<size_t>(info.st_size);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (mapped == MAP_FAILED) {
    size_ = 0;
    throw Error("cannot map {}: {}", path.string(), std::strerror(errno));
  }
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void MappedFile::release(std::span<const std::byte> part) const {
  RHEA_CHECK(part.empty() || (part.data() >= data_ && part.data() + part.size() <= data_ + size_),
             "{} bytes outside the map", part.size());
  // The first and the last page may hold a neighbour that is being read.
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = static_cast<size_t>(part.data() - data_);
  const size_t from = (begin + page - 1) / page * page, to = (begin + part.size()) / page * page;
  if (from < to) ::madvise(const_cast<std::byte*>(data_) + from, to - from, MADV_DONTNEED);
}

std::string read_file(const std::filesystem::path& path) {
  return std::string(MappedFile(path).text());
}

void write_file_atomic(const std::filesystem::path& path, std::string_view content) {
  check_output_file(path);
  std::filesystem::path temporary = path;
  temporary += fmt::format(".tmp-{}", ::getpid());
  const auto fail = [&](const char* what) {
    const int code = errno;
    ::unlink(temporary.c_str());
    errno = code;
    throw_file_error(path, what);
  };
  ::unlink(temporary.c_str());
  {
    const Descriptor file{
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)};
    if (file.fd < 0) fail("create");
    size_t done = 0;
    while (done < content.size()) {
      const ssize_t count = ::write(file.fd, content.data() + done, content.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("write");
      done += static_cast<size_t>(count);
    }
    if (::fsync(file.fd) != 0) fail("sync");
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail("rename");
}

}  // namespace rhea
