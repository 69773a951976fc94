// Building, caching and mapping indices.
#include "rhea/components/data/record_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/sha256.h"

namespace rhea::data {
namespace {

namespace fs = std::filesystem;

// First bytes of a cached index; the file that it belongs to is part of its name.
struct CacheHeader {
  char magic[8] = {'R', 'H', 'E', 'A', 'I', 'D', 'X', '1'};
  uint64_t file_size = 0;
  uint64_t num_records = 0;
};
static_assert(sizeof(CacheHeader) % alignof(RecordPlace) == 0);

void find_records(std::string_view text, RecordKind kind,
                  const std::function<void(const RecordPlace&)>& found) {
  const size_t begin = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  if (kind == RecordKind::text_file) {
    if (begin < text.size()) found({begin, text.size(), 1});
    return;
  }
  RecordPlace block;  // text_block: the lines so far; begin == end: none
  uint64_t line = 0;
  for (size_t at = begin; at < text.size();) {
    const size_t newline = text.find('\n', at);
    const size_t end = newline == std::string_view::npos ? text.size() : newline;
    ++line;
    const bool blank = is_blank(text.substr(at, end - at));
    if (kind == RecordKind::json_line) {
      if (!blank) found({at, end, line});
    } else if (!blank) {
      if (block.begin == block.end) block = {at, end, line};
      block.end = end;
    } else if (block.begin < block.end) {
      found(block);
      block = {};
    }
    at = end + 1;
  }
  if (block.begin < block.end) found(block);
}

// Held while one process builds an index and others wait; the lock goes with the process.
class FileLock {
 public:
  explicit FileLock(const fs::path& path)
      : fd_(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (fd_ < 0 || ::flock(fd_, LOCK_EX) != 0)
      throw Error("index of the data: cannot lock {}: {}", path.string(), std::strerror(errno));
  }
  ~FileLock() { ::close(fd_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

// Streams the index to a temporary name and renames it: readers see a whole one or none.
void write_cache(const fs::path& cache, std::string_view text, RecordKind kind) {
  const fs::path temporary = cache.string() + ".tmp";
  const auto failed = [&] {
    const int error = errno;
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw ExitError(ExitCode::out_of_memory, fmt::format("index of the data: cannot write {}: {}",
                                                         temporary.string(), std::strerror(error)));
  };
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(temporary.c_str(), "wb"),
                                                       std::fclose);
  if (!file) failed();
  CacheHeader header;
  header.file_size = text.size();
  const auto put = [&](const void* data, size_t size) {
    if (std::fwrite(data, size, 1, file.get()) != 1) failed();
  };
  put(&header, sizeof header);
  find_records(text, kind, [&](const RecordPlace& place) {
    put(&place, sizeof place);
    ++header.num_records;
  });
  if (std::fseek(file.get(), 0, SEEK_SET) != 0) failed();
  put(&header, sizeof header);
  if (std::fflush(file.get()) != 0 || ::fsync(::fileno(file.get())) != 0) failed();
  file.reset();
  fs::rename(temporary, cache);
}

}  // namespace

bool RecordIndex::map_cache(const fs::path& cache, uint64_t file_size) {
  if (!fs::exists(cache)) return false;
  cache_ = MappedFile(cache);
  cache_path_ = cache;
  const auto bytes = cache_.bytes();
  CacheHeader header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  const uint64_t num_places = (bytes.size() - sizeof header) / sizeof(RecordPlace);
  if (std::memcmp(header.magic, CacheHeader().magic, sizeof header.magic) != 0 ||
      header.file_size != file_size || header.num_records != num_places)
    return false;
  places_ = {reinterpret_cast<const RecordPlace*>(bytes.data() + sizeof header), num_places};
  return true;
}

RecordIndex::RecordIndex(const fs::path& path, const MappedFile& file, RecordKind kind,
                         const fs::path& folder)
    : file_size_(file.text().size()) {
  const std::string_view text = file.text();
  if (folder.empty() || text.size() < kCachedFrom) {
    find_records(text, kind, [this](const RecordPlace& place) { built_.push_back(place); });
    places_ = built_;
    return;
  }
  fs::create_directories(folder);
  const auto changed = fs::last_write_time(path).time_since_epoch().count();
  const std::string key = tokenizer::sha256_hex(fmt::format(
      "{} {} {} {}", fs::canonical(path).string(), text.size(), changed, static_cast<int>(kind)));
  const fs::path cache = folder / ("records-" + key.substr(0, 32) + ".idx");
  if (map_cache(cache, text.size())) return;
  const FileLock lock(cache.string() + ".lock");
  if (map_cache(cache, text.size())) return;
  write_cache(cache, text, kind);
  if (!map_cache(cache, text.size()))
    throw Error("index of the data: {} changed while it was written", cache.string());
}

const RecordPlace& RecordIndex::operator[](size_t i) const {
  const RecordPlace& place = places_[i];
  if (place.begin > place.end || place.end > file_size_)
    throw Error(
        "index of the data: record {} of {} lies at bytes [{}, {}) of a file of {}; the index is "
        "damaged, remove it and it is made anew",
        i, cache_path_.string(), place.begin, place.end, file_size_);
  return place;
}

}  // namespace rhea::data
