// Post-processors of tokenizer.json: the special tokens around one text.
#pragma once
#include <cstdint>
#include <vector>

#include "rhea/components/tokenizer/json_fields.h"

namespace rhea::tokenizer {

struct PostProcessor {
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;

  // Nothing around the text.
  PostProcessor() = default;
  // From the "post_processor" field: TemplateProcessing, ByteLevel (offsets only), BertProcessing,
  // RobertaProcessing, Sequence. Throws Error naming any other type.
  explicit PostProcessor(const JsonField& field) { add(field, 0); }

 private:
  void add(const JsonField& field, int depth);
  void add_template(const JsonField& field);
};

}  // namespace rhea::tokenizer
