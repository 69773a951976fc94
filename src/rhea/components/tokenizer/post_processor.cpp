// The post-processors of tokenizer.json.
#include "rhea/components/tokenizer/post_processor.h"

#include <nlohmann/json.hpp>

namespace rhea::tokenizer {

void PostProcessor::add(const JsonField& field, int depth) {
  if (field.is_null()) return;
  const std::string type = field["type"].string();
  if (type == "Sequence") {
    if (depth == kMaxComponentDepth) field.fail("Sequences are nested too deeply");
    const JsonField list = field["processors"];
    for (size_t i = 0; i < list.array().size(); ++i) add(list.item(i), depth + 1);
  } else if (type == "TemplateProcessing") {
    add_template(field);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    for (const char* name : {"cls", "sep"})
      if (field[name].array().size() != 2) field[name].fail("expected [token, id]");
    prefix.insert(prefix.begin(), field["cls"].item(1).id());
    suffix.push_back(field["sep"].item(1).id());
  } else if (type != "ByteLevel") {
    field.fail("post-processor type \"" + type +
               "\" is not supported (TemplateProcessing, ByteLevel, BertProcessing, "
               "RobertaProcessing, Sequence are)");
  }
}

void PostProcessor::add_template(const JsonField& field) {
  const JsonField single = field["single"];
  std::vector<int32_t> before;
  bool seen_text = false;
  for (size_t i = 0; i < single.array().size(); ++i) {
    const JsonField part = single.item(i);
    if (!part["Sequence"].is_null()) {
      if (seen_text) part.fail("the text stands twice in the template");
      seen_text = true;
      continue;
    }
    const std::string name = part["SpecialToken"]["id"].string();
    const JsonField ids = field["special_tokens"][name]["ids"];
    for (size_t k = 0; k < ids.array().size(); ++k)
      (seen_text ? suffix : before).push_back(ids.item(k).id());
  }
  if (!seen_text) single.fail("the template has no place for the text");
  prefix.insert(prefix.begin(), before.begin(), before.end());
}

}  // namespace rhea::tokenizer
