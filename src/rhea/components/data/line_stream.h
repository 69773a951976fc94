// Lines of a file that may be compressed, in constant memory.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace rhea::data {

class LineStream {
 public:
  // Throws Error naming the path.
  explicit LineStream(const std::filesystem::path& path);
  ~LineStream();
  LineStream(LineStream&&) noexcept;
  LineStream& operator=(LineStream&&) noexcept;

  // The next line without its LF (only LF ends a line; a byte order mark at the begin of the file
  // is left out). False at the end. Throws Error for compressed data that is damaged or cut off.
  bool next(std::string& line);
  // Number of the line read last, from 1.
  int64_t line_number() const { return line_number_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  class Source;
  bool fill();

  std::filesystem::path path_;
  std::unique_ptr<Source> source_;
  std::string buffer_;
  size_t at_ = 0;
  size_t size_ = 0;
  int64_t line_number_ = 0;
};

}  // namespace rhea::data
