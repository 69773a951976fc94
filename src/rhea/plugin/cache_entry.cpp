#include "rhea/plugin/cache_entry.h"

#include <fmt/format.h>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/tokenizer/sha256.h"

namespace rhea::plugin {
namespace {

constexpr std::string_view kFirstLine = "rhea plugin cache 1";
constexpr std::string_view kLastLine = "end";

// Splits off the first line.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace

std::string CacheRecord::text() const {
  std::string made =
      fmt::format("{}\n{}\n{}\n{}\n", kFirstLine, source.string(), library.string(), library_hash);
  for (const File& file : files) made += fmt::format("{} {}\n", file.hash, file.path.string());
  return made + std::string(kLastLine) + "\n";
}

std::optional<CacheRecord> parse_record(std::string_view text) {
  if (take_line(text) != kFirstLine) return std::nullopt;
  CacheRecord record;
  record.source = take_line(text);
  record.library = take_line(text);
  record.library_hash = take_line(text);
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line == kLastLine) return record;
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) break;
    record.files.push_back({line.substr(space + 1), std::string(line.substr(0, space))});
  }
  return std::nullopt;  // cut short
}

std::vector<std::filesystem::path> parse_dependencies(std::string_view makefile) {
  std::vector<std::filesystem::path> files;
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) files.emplace_back(std::exchange(word, {}));
  };
  makefile.remove_prefix(std::min(makefile.size(), makefile.find(": ") + 1));
  for (size_t i = 0; i < makefile.size(); ++i) {
    const char c = makefile[i], next = i + 1 < makefile.size() ? makefile[i + 1] : '\n';
    if (c == '\\' && next == '\n') {
      flush();
      ++i;
    } else if ((c == '\\' && (next == ' ' || next == '#' || next == '\\')) ||
               (c == '$' && next == '$')) {
      word += next;
      ++i;
    } else if (c == ' ' || c == '\n') {
      flush();
    } else {
      word += c;
    }
  }
  flush();
  return files;
}

std::string file_hash(const std::filesystem::path& path) {
  try {
    return tokenizer::sha256_hex(MappedFile(path).text());
  } catch (const Error&) {
    return "";
  }
}

}  // namespace rhea::plugin
