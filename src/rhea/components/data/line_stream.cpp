// Decompression by zlib and zstd; plain files pass through.
#include "rhea/components/data/line_stream.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
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
  explicit Source(const std::filesystem::path& path)
      : path_(path), compression_(detect_compression(path)), file_(path) {
    constexpr int kGzipFormat = 16;
    if (compression_ == Compression::zstd) {
      zstd_ = ZSTD_createDStream();
      RHEA_CHECK(zstd_ != nullptr, "zstd: no memory for a stream");
    } else if (compression_ == Compression::gzip) {
      RHEA_CHECK(inflateInit2(&gzip_, MAX_WBITS + kGzipFormat) == Z_OK,
                 "zlib: no memory for a stream");
    }
  }
  ~Source() {
    if (compression_ == Compression::gzip) inflateEnd(&gzip_);
    ZSTD_freeDStream(zstd_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Up to `size` bytes; 0 at the end.
  size_t read(char* out, size_t size) {
    switch (compression_) {
      case Compression::gzip:
        return read_gzip(out, size);
      case Compression::zstd:
        return read_zstd(out, size);
      default:
        return read_plain(out, size);
    }
  }

 private:
  std::string_view rest() const { return file_.text().substr(at_); }

  size_t read_plain(char* out, size_t size) {
    const size_t count = rest().copy(out, size);
    at_ += count;
    return count;
  }

  // A file may be several compressed ones, one after the other. Whatever else follows is an error:
  // it may be a part whose begin is damaged. Only zeros do, which some tools pad with.
  size_t read_gzip(char* out, size_t size) {
    gzip_.next_out = reinterpret_cast<Bytef*>(out);
    gzip_.avail_out = static_cast<uInt>(size);
    while (gzip_.avail_out == size) {
      if (frame_done_ && rest().find_first_not_of('\0') == std::string_view::npos) return 0;
      if (frame_done_) inflateReset(&gzip_);
      frame_done_ = false;
      const size_t given = std::min<size_t>(rest().size(), 1 << 30);
      gzip_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest().data()));
      gzip_.avail_in = static_cast<uInt>(given);
      const int rc = inflate(&gzip_, Z_NO_FLUSH);
      at_ += given - gzip_.avail_in;
      frame_done_ = rc == Z_STREAM_END;
      if (rc == Z_BUF_ERROR)
        throw Error("{}: gzip data is cut off; the file ends after {} bytes", path_.string(), at_);
      if (rc != Z_OK && rc != Z_STREAM_END)
        throw Error("{}: gzip data is damaged near byte {} of {}: {}", path_.string(), at_,
                    file_.text().size(), gzip_.msg != nullptr ? gzip_.msg : "unknown format");
    }
    return size - gzip_.avail_out;
  }

  size_t read_zstd(char* out, size_t size) {
    ZSTD_outBuffer output{out, size, 0};
    while (output.pos == 0) {
      const bool at_end = rest().empty();
      if (at_end && frame_done_) return 0;
      ZSTD_inBuffer input{rest().data(), rest().size(), 0};
      const size_t rc = ZSTD_decompressStream(zstd_, &output, &input);
      at_ += input.pos;
      if (ZSTD_isError(rc) != 0)
        throw Error("{}: zstd data is damaged near byte {} of {}: {}", path_.string(), at_,
                    file_.text().size(), ZSTD_getErrorName(rc));
      frame_done_ = rc == 0;
      if (at_end && output.pos == 0 && !frame_done_)
        throw Error("{}: zstd data is cut off; the file ends after {} bytes", path_.string(), at_);
    }
    return output.pos;
  }

  std::filesystem::path path_;
  Compression compression_;
  MappedFile file_;
  size_t at_ = 0;  // of the file's bytes
  z_stream gzip_{};
  ZSTD_DStream* zstd_ = nullptr;
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
