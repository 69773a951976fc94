// JSON that is read: what is refused before it is parsed, the parser, and what its errors say.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace rhea {

// Printing and copying a parsed value takes stack for each of its levels; no file that is read here
// needs more.
inline constexpr int kMaxJsonDepth = 200;

// Throws Error when the text is empty, a Git LFS pointer, or nested deeper. Call before it is
// parsed; whether it is JSON at all is the parser's to say. `where` names the text in the message.
void check_json_depth(std::string_view json, std::string_view where);

// The value of a text; throws nlohmann::json::parse_error. Compiled here once: each file with a
// parser of its own takes a second and a half longer to compile.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);
// The same for text from outside: Error as check_json_depth throws it, or "<where>: not valid JSON:
// <reason, with line and column>".
nlohmann::json parse_json(std::string_view text, std::string_view where);
nlohmann::ordered_json parse_ordered_json(std::string_view text, std::string_view where);
// A discarded value (no object, no array, nothing) where the text is no JSON.
nlohmann::json parse_json_or_discard(std::string_view text);

// What an exception of the JSON library says, without its number: "parse error at line 1, ..." of
// "[json.exception.parse_error.101] parse error at line 1, ...".
std::string_view json_reason(std::string_view what);

}  // namespace rhea
