// JSON that is read: what is refused before it is parsed, and what its parser's errors say.
#pragma once
#include <string_view>

namespace rhea {

// Printing and copying a parsed value takes stack for each of its levels; no file that is read here
// needs more.
inline constexpr int kMaxJsonDepth = 200;

// Throws Error when the text is empty, a Git LFS pointer, or nested deeper. Call before it is
// parsed; whether it is JSON at all is the parser's to say. `where` names the text in the message.
void check_json_depth(std::string_view json, std::string_view where);

// What an exception of the JSON library says, without its number: "parse error at line 1, ..." of
// "[json.exception.parse_error.101] parse error at line 1, ...".
std::string_view json_reason(std::string_view what);

}  // namespace rhea
