// Records of text files: where one document ends and the next begins, and what of it is text.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "rhea/components/data/document_source.h"

namespace rhea::data {

enum class RecordKind {
  json_line,   // each line that is not blank is a JSON object with a text field
  text_block,  // lines up to a blank one
  text_file,   // the whole file
};

struct RecordFormat {
  RecordKind kind = RecordKind::json_line;
  std::string text_field = "text";
};

// Only blanks, tabs, CR.
bool is_blank(std::string_view line);

// Text of a record that begins at `line` of `file`; what is wrong with it goes into
// Document::problem.
void parse_record(const RecordFormat& format, std::string_view record,
                  const std::filesystem::path& file, int64_t line, Document& document);

}  // namespace rhea::data
