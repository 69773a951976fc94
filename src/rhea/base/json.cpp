#include "rhea/base/json.h"

#include <cstddef>
#include <nlohmann/json.hpp>

#include "rhea/base/downloaded.h"
#include "rhea/base/error.h"

namespace rhea {
namespace {

template <class Json>
Json parse_checked(std::string_view text, std::string_view where) {
  check_json_depth(text, where);
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw Error("{}: not valid JSON: {}", where, json_reason(error.what()));
  }
}

}  // namespace

void check_json_depth(std::string_view json, std::string_view where) {
  check_downloaded(json, where);
  int depth = 0;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') {
      for (++i; i < json.size() && json[i] != '"'; ++i)
        if (json[i] == '\\') ++i;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth)
        throw Error(
            "{}: values are nested more than {} deep (byte {}); the file is damaged or is not what "
            "its name says",
            where, kMaxJsonDepth, i);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

nlohmann::json parse_json(std::string_view text) { return nlohmann::json::parse(text); }
nlohmann::ordered_json parse_ordered_json(std::string_view text) {
  return nlohmann::ordered_json::parse(text);
}
nlohmann::json parse_json(std::string_view text, std::string_view where) {
  return parse_checked<nlohmann::json>(text, where);
}
nlohmann::ordered_json parse_ordered_json(std::string_view text, std::string_view where) {
  return parse_checked<nlohmann::ordered_json>(text, where);
}
nlohmann::json parse_json_or_discard(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string_view json_reason(std::string_view what) {
  const size_t end = what.starts_with("[json.exception.") ? what.find("] ") : what.npos;
  return end == what.npos ? what : what.substr(end + 2);
}

}  // namespace rhea
