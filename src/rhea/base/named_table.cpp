#include "rhea/base/named_table.h"

namespace rhea {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

void check_new_row(std::string_view kind, std::string_view name, std::string_view origin,
                   std::string_view fault, const std::string* taken_by) {
  if (name.empty()) throw Error("{}: the name of the {} is empty", origin, kind);
  if (!fault.empty()) throw Error("{} '{}' of {} {}", kind, name, origin, fault);
  if (taken_by != nullptr)
    throw Error("{} '{}' is already registered by {}; {} must take another name", kind, name,
                *taken_by, origin);
}

}  // namespace rhea
