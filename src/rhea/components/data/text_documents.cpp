// Indexed and streamed text files.
#include "rhea/components/data/text_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "rhea/base/mapped_file.h"
#include "rhea/components/data/input_files.h"
#include "rhea/components/data/line_stream.h"
#include "rhea/components/data/record_index.h"

namespace rhea::data {
namespace {

namespace fs = std::filesystem;

std::string describe(const std::vector<fs::path>& files) {
  const std::string first = files.front().string();
  return files.size() == 1 ? first : fmt::format("{} and {} more", first, files.size() - 1);
}

// Plain files: mapped and indexed; the pages of text that was read belong to the system's cache.
class IndexedDocuments : public DocumentSource {
 public:
  IndexedDocuments(const std::vector<fs::path>& files, RecordFormat format,
                   const fs::path& index_folder)
      : format_(std::move(format)), description_(describe(files)) {
    for (const fs::path& path : files) {
      MappedFile map(path);
      RecordIndex index(path, map, format_.kind, index_folder);
      const int64_t first = count_;
      count_ += static_cast<int64_t>(index.size());
      files_.push_back({path, std::move(map), std::move(index), first});
    }
  }

  std::optional<int64_t> num_documents() const override { return count_; }
  std::string description() const override { return description_; }

  bool read(int64_t number, Document& document) override {
    const auto after = std::upper_bound(files_.begin(), files_.end(), number,
                                        [](int64_t n, const File& file) { return n < file.first; });
    const File& file = *std::prev(after);
    const RecordPlace place = file.index[static_cast<size_t>(number - file.first)];
    parse_record(format_, file.map.text().substr(place.begin, place.end - place.begin), file.path,
                 static_cast<int64_t>(place.line), document);
    return true;
  }

 private:
  struct File {
    fs::path path;
    MappedFile map;
    RecordIndex index;
    int64_t first = 0;  // number of its first document
  };
  RecordFormat format_;
  std::string description_;
  std::vector<File> files_;
  int64_t count_ = 0;
};

// Files of which at least one is compressed: read from begin to end.
class StreamedDocuments : public DocumentSource {
 public:
  StreamedDocuments(std::vector<fs::path> files, RecordFormat format)
      : files_(std::move(files)), format_(std::move(format)) {}

  std::optional<int64_t> num_documents() const override { return std::nullopt; }
  std::string description() const override { return describe(files_); }

  bool read(int64_t number, Document& document) override {
    if (number < next_number_) {
      stream_.reset();
      next_file_ = 0;
      next_number_ = 0;
    }
    while (next_record()) {
      if (next_number_++ < number) continue;
      parse_record(format_, record_, stream_->path(), first_line_, document);
      return true;
    }
    return false;
  }

 private:
  // The next record of the next file that has one, into record_.
  bool next_record() {
    while (true) {
      if (!stream_) {
        if (next_file_ == files_.size()) return false;
        stream_.emplace(files_[next_file_++]);
      }
      if (next_record_of_file()) return true;
      stream_.reset();
    }
  }

  bool next_record_of_file() {
    record_.clear();
    bool any = false;
    std::string line;
    while (stream_->next(line)) {
      const bool blank = format_.kind != RecordKind::text_file && is_blank(line);
      if (blank && !any) continue;
      if (blank) return true;
      if (!any) first_line_ = stream_->line_number();
      any = true;
      record_ += line;
      if (format_.kind == RecordKind::json_line) return true;
      record_ += '\n';
    }
    return any;
  }

  std::vector<fs::path> files_;
  RecordFormat format_;
  std::optional<LineStream> stream_;
  size_t next_file_ = 0;
  int64_t next_number_ = 0;
  std::string record_;
  int64_t first_line_ = 0;
};

}  // namespace

std::unique_ptr<DocumentSource> open_text_documents(const std::vector<fs::path>& files,
                                                    const RecordFormat& format,
                                                    const fs::path& index_folder) {
  const bool compressed = std::any_of(files.begin(), files.end(), [](const fs::path& file) {
    return detect_compression(file) != Compression::none;
  });
  if (compressed) return std::make_unique<StreamedDocuments>(files, format);
  return std::make_unique<IndexedDocuments>(files, format, index_folder);
}

}  // namespace rhea::data
