// The streamed writer.
#include "rhea/components/safetensors/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <unordered_set>

#include "rhea/base/error.h"
#include "rhea/base/output_file.h"

namespace rhea::safetensors {

Writer::Writer(const std::filesystem::path& path, std::span<const TensorSpec> tensors,
               const std::map<std::string, std::string>& metadata)
    : path_(path), temporary_(path) {
  check_output_file(path);
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return element_bits(tensors[a].dtype) > element_bits(tensors[b].dtype);
  });
  std::unordered_set<std::string_view> names;
  std::vector<Entry> entries;
  uint64_t end = 0;
  for (const size_t i : order) {
    const TensorSpec& tensor = tensors[i];
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second)
      throw Error("{}: cannot write a {} tensor '{}'", path.string(),
                  tensor.name == "__metadata__" ? "reserved name as" : "second", tensor.name);
    const uint64_t bytes = tensor_bytes(tensor.dtype, tensor.shape, tensor.name);
    entries.push_back({tensor.name, tensor.dtype, tensor.shape, end, end + bytes});
    end += bytes;
  }
  const std::string header = format_header(entries, metadata);
  slots_.resize(tensors.size());
  for (size_t k = 0; k < order.size(); ++k) {
    const uint64_t begin = header.size() + entries[k].begin;
    slots_[order[k]] = {entries[k].name, begin, begin, header.size() + entries[k].end};
  }
  file_size_ = header.size() + end;

  temporary_ += fmt::format(".tmp-{}", ::getpid());
  ::unlink(temporary_.c_str());
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd_ < 0) fail("create");
  try {
    write_at(0, std::as_bytes(std::span(header)));
  } catch (...) {
    ::close(fd_);
    ::unlink(temporary_.c_str());
    throw;
  }
}

Writer::~Writer() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void Writer::fail(const char* action) const {
  const int code = errno;
  const std::string message =
      fmt::format("cannot {} {}: {}", action, path_.string(), std::strerror(code));
  if (code != ENOSPC && code != EDQUOT && code != EFBIG) throw Error(message);
  std::error_code ignored;
  const auto space =
      std::filesystem::space(path_.parent_path().empty() ? "." : path_.parent_path(), ignored);
  throw ExitError(ExitCode::out_of_memory,
                  fmt::format("{} (the file needs {} bytes, {} are free)", message, file_size_,
                              ignored ? 0 : space.available));
}

void Writer::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write");
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

void Writer::write(size_t index, std::span<const std::byte> bytes) {
  Slot& slot = slots_.at(index);
  RHEA_CHECK(bytes.size() <= slot.end - slot.next, "{} more bytes for tensor {}, which lacks {}",
             bytes.size(), slot.name, slot.end - slot.next);
  write_at(slot.next, bytes);
  slot.next += bytes.size();
}

uint64_t Writer::file_offset(size_t index) const { return slots_.at(index).begin; }

void Writer::finish() {
  for (const Slot& slot : slots_)
    RHEA_CHECK(slot.next == slot.end, "tensor {} lacks {} bytes", slot.name, slot.end - slot.next);
  if (::fsync(fd_) != 0) fail("sync");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
  ::close(fd_);
  fd_ = -1;
}

void write_file(const std::filesystem::path& path, std::span<const TensorView> tensors,
                const std::map<std::string, std::string>& metadata) {
  std::vector<TensorSpec> specs;
  for (const TensorView& tensor : tensors)
    specs.push_back({tensor.name, tensor.dtype, tensor.shape});
  Writer writer(path, specs, metadata);
  for (size_t i = 0; i < tensors.size(); ++i) writer.write(i, tensors[i].bytes);
  writer.finish();
}

}  // namespace rhea::safetensors
