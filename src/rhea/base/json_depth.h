// A limit on the nesting of JSON that is read.
#pragma once
#include <string_view>

namespace rhea {

// Printing and copying a parsed value takes stack for each of its levels; no file that is read here
// needs more.
inline constexpr int kMaxJsonDepth = 200;

// Throws when lists and objects are nested deeper. Call before the text is parsed; whether it is
// JSON at all is the parser's to say. `where` names the text in the message.
void check_json_depth(std::string_view json, std::string_view where);

}  // namespace rhea
