// Decompression by zlib (which also passes plain files through) and zstd.
#include "rhea/components/data/line_stream.h"

#include <zlib.h>
#include <zstd.h>

#include <cstring>
#include <string_view>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/data/input_files.h"

namespace rhea::data {
namespace {

constexpr size_t kBufferSize = 1 << 16;

}  // namespace

// Bytes of one file; only one of the two libraries is in use.
class LineStream::Source {
 public:
  explicit Source(const std::filesystem::path& path) : path_(path) {
    if (detect_compression(path) == Compression::zstd) {
      file_ = MappedFile(path);
      input_ = {file_.bytes().data(), file_.bytes().size(), 0};
      zstd_ = ZSTD_createDStream();
      RHEA_CHECK(zstd_ != nullptr, "zstd: no memory for a stream");
    } else {
      gzip_ = gzopen(path.c_str(), "rb");
      if (gzip_ == nullptr) throw Error("cannot open {} for reading", path.string());
      gzbuffer(gzip_, kBufferSize);
    }
  }
  ~Source() {
    if (gzip_ != nullptr) gzclose(gzip_);
    ZSTD_freeDStream(zstd_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Up to `size` bytes; 0 at the end.
  size_t read(char* out, size_t size) {
    return gzip_ != nullptr ? read_gzip(out, size) : read_zstd(out, size);
  }

 private:
  size_t read_gzip(char* out, size_t size) {
    const int count = gzread(gzip_, out, static_cast<unsigned>(size));
    int code = Z_OK;
    const char* message = gzerror(gzip_, &code);
    // A file that is cut off gives its last bytes first and Z_BUF_ERROR with them.
    if (count < 0 || (code != Z_OK && code != Z_STREAM_END))
      throw Error("{}: gzip data is damaged or cut off: {}", path_.string(), message);
    return static_cast<size_t>(count);
  }

  size_t read_zstd(char* out, size_t size) {
    ZSTD_outBuffer output{out, size, 0};
    while (output.pos == 0) {
      const bool at_end = input_.pos == input_.size;
      if (at_end && frame_done_) return 0;
      const size_t rc = ZSTD_decompressStream(zstd_, &output, &input_);
      if (ZSTD_isError(rc) != 0)
        throw Error("{}: zstd data is damaged: {}", path_.string(), ZSTD_getErrorName(rc));
      frame_done_ = rc == 0;
      if (at_end && output.pos == 0 && !frame_done_)
        throw Error("{}: zstd data is cut off", path_.string());
    }
    return output.pos;
  }

  std::filesystem::path path_;
  gzFile gzip_ = nullptr;
  ZSTD_DStream* zstd_ = nullptr;
  MappedFile file_;
  ZSTD_inBuffer input_{};
  bool frame_done_ = true;
};

LineStream::LineStream(const std::filesystem::path& path)
    : path_(path), source_(std::make_unique<Source>(path)), buffer_(kBufferSize, '\0') {}
LineStream::~LineStream() = default;
LineStream::LineStream(LineStream&&) noexcept = default;
LineStream& LineStream::operator=(LineStream&&) noexcept = default;

bool LineStream::fill() {
  at_ = 0;
  size_ = source_->read(buffer_.data(), buffer_.size());
  return size_ > 0;
}

bool LineStream::next(std::string& line) {
  line.clear();
  bool any = false;
  while (true) {
    if (at_ == size_ && !fill()) break;
    any = true;
    const std::string_view rest(buffer_.data() + at_, size_ - at_);
    const size_t newline = rest.find('\n');
    line.append(rest.substr(0, newline));
    if (newline != std::string_view::npos) {
      at_ += newline + 1;
      break;
    }
    at_ = size_;
  }
  if (!any) return false;
  if (++line_number_ == 1 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
  return true;
}

}  // namespace rhea::data
