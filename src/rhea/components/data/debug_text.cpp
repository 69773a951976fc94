// Reading the files of the fortunes packages.
#include "rhea/components/data/debug_text.h"

#include <array>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"

namespace rhea::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 43> kFiles = {
    "art",           "ascii-art",  "computers", "cookie",       "debian",   "definitions",
    "disclaimer",    "drugs",      "education", "ethnic",       "food",     "fortunes",
    "goedel",        "humorists",  "kids",      "knghtbrd",     "law",      "linux",
    "linuxcookie",   "literature", "love",      "magic",        "medicine", "men-women",
    "miscellaneous", "news",       "paradoxum", "people",       "perl",     "pets",
    "platitudes",    "politics",   "pratchett", "riddles",      "science",  "songs-poems",
    "sports",        "startrek",   "tao",       "translate-me", "wisdom",   "work",
    "zippy"};

std::string read_fortune_file(const fs::path& folder, std::string_view name) {
  const fs::path path = folder / name;
  if (!fs::is_regular_file(path))
    throw Error(
        "debug_text: {} is absent; install the Debian packages fortunes and fortunes-min, or set "
        "dataloader.dataset_path to "
        "the folder with their files, or dataloader.dataset to another data set",
        path.string());
  return read_file(path);
}

class DebugText : public DocumentSource {
 public:
  DebugText(std::vector<std::string> documents, std::string description)
      : documents_(std::move(documents)), description_(std::move(description)) {}
  std::optional<int64_t> num_documents() const override {
    return static_cast<int64_t>(documents_.size());
  }
  bool read(int64_t number, Document& document) override {
    document.problem.clear();
    document.text = documents_.at(static_cast<size_t>(number));
    return true;
  }
  std::string description() const override { return description_; }

 private:
  std::vector<std::string> documents_;
  std::string description_;
};

}  // namespace

std::span<const std::string_view> debug_text_files() { return kFiles; }

std::vector<std::string> split_fortunes(std::string_view text) {
  std::vector<std::string> documents;
  size_t begin = 0;  // of the document
  const auto end_document = [&](size_t end) {
    std::string_view document = text.substr(begin, end - begin);
    if (document.ends_with('\n')) document.remove_suffix(1);
    if (!document.empty()) documents.emplace_back(document);
  };
  for (size_t line = 0; line < text.size();) {
    const size_t newline = text.find('\n', line);
    const size_t line_end = newline == std::string_view::npos ? text.size() : newline;
    const size_t next = newline == std::string_view::npos ? text.size() : newline + 1;
    if (text.substr(line, line_end - line) == "%") {
      end_document(line);
      begin = next;
    }
    line = next;
  }
  end_document(text.size());
  return documents;
}

std::string read_debug_text(const fs::path& folder) {
  std::string text;
  for (const std::string_view name : kFiles) text += read_fortune_file(folder, name);
  return text;
}

std::unique_ptr<DocumentSource> open_debug_text(const fs::path& folder, DebugTextPart part) {
  std::vector<std::string> documents;
  int64_t number = 0;
  for (const std::string_view name : kFiles) {
    for (std::string& document : split_fortunes(read_fortune_file(folder, name))) {
      const bool held_out = ++number % kHeldOutEvery == 0;
      if (held_out == (part == DebugTextPart::validation)) documents.push_back(std::move(document));
    }
  }
  return std::make_unique<DebugText>(std::move(documents), folder.string());
}

}  // namespace rhea::data
