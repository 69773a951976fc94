#include "rhea/components/tokenizer/metaspace.h"

#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {

Metaspace parse_metaspace(const JsonField& field) {
  Metaspace metaspace;
  metaspace.mark = field["replacement"].string_or("\u2581");
  if (metaspace.mark.empty() ||
      decode_code_point(metaspace.mark, 0).length != metaspace.mark.size())
    field["replacement"].fail("expected one character, found \"" + metaspace.mark + "\"");
  const std::string scheme = field["prepend_scheme"].string_or("always");
  if (scheme == "first") {
    metaspace.prepend = Metaspace::Prepend::first;
  } else if (scheme == "never") {
    metaspace.prepend = Metaspace::Prepend::never;
  } else if (scheme != "always") {
    field["prepend_scheme"].fail("\"" + scheme + "\" is not one of always, first, never");
  }
  if (!field["add_prefix_space"].boolean_or(true)) {
    if (!field["prepend_scheme"].is_null() && metaspace.prepend != Metaspace::Prepend::never)
      field.fail("add_prefix_space false contradicts prepend_scheme \"" + scheme + "\"");
    metaspace.prepend = Metaspace::Prepend::never;
  }
  metaspace.split = field["split"].boolean_or(true);
  return metaspace;
}

}  // namespace rhea::tokenizer
