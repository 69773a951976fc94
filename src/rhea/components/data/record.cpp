// Records to documents.
#include "rhea/components/data/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::data {
namespace {

using nlohmann::json;

// The text, or the reason why there is none.
bool json_text(std::string_view record, const std::string& field, std::string& text,
               std::string& reason) {
  json row;
  try {
    row = parse_json(record);
  } catch (const json::exception& error) {
    reason = fmt::format("malformed JSON: {}", json_reason(error.what()));
    return false;
  }
  if (!row.is_object()) {
    reason = fmt::format("the row is a JSON {}, not an object", row.type_name());
    return false;
  }
  const auto found = row.find(field);
  if (found == row.end()) {
    reason = fmt::format("field \"{}\" is absent", field);
  } else if (!found->is_string()) {
    reason = fmt::format("field \"{}\" is {}, not a string", field, found->type_name());
  } else {
    text = std::move(found->get_ref<std::string&>());
    return true;
  }
  return false;
}

// CRLF becomes LF; the line end of the last line goes.
std::string plain_text(std::string_view record) {
  std::string text;
  text.reserve(record.size());
  for (size_t i = 0; i < record.size(); ++i)
    if (record[i] != '\r' || (i + 1 < record.size() && record[i + 1] != '\n'))
      text.push_back(record[i]);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

void parse_record(const RecordFormat& format, std::string_view record,
                  const std::filesystem::path& file, int64_t line, Document& document) {
  document.text.clear();
  document.problem.clear();
  std::string reason;
  if (const size_t bad = tokenizer::find_invalid_utf8(record); bad != std::string_view::npos) {
    const auto lines_before =
        std::count(record.begin(), record.begin() + static_cast<std::ptrdiff_t>(bad), '\n');
    line += lines_before;
    reason = fmt::format("invalid UTF-8: byte 0x{:02X}", static_cast<unsigned char>(record[bad]));
  } else if (format.kind == RecordKind::json_line) {
    json_text(record, format.text_field, document.text, reason);
  } else {
    document.text = plain_text(record);
  }
  if (!reason.empty()) document.problem = fmt::format("{}:{}: {}", file.string(), line, reason);
}

}  // namespace rhea::data
