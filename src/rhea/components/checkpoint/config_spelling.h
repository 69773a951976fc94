// The two spellings of config.json: Transformers 4 keeps rotary settings at the top (rope_theta,
// rope_scaling), Transformers 5 in rope_parameters.
#pragma once
#include <string>
#include <string_view>

#include "rhea/base/dtype.h"

namespace rhea::checkpoint {

enum class ConfigSpelling { v4, v5 };

// "v4" or "v5"; throws Error naming the text.
ConfigSpelling parse_config_spelling(std::string_view text);

// The config.json `text` in the given spelling, with the dtype of its weights stated (as
// torch_dtype, which both versions read, and in v5 also as dtype) and without
// quantization_config: what is written is not quantized. Every other field stays as it is, in its
// order. `origin` begins every error: text that is no JSON object, rotary settings in both
// spellings, settings that v4 cannot say.
std::string spell_config(std::string_view text, std::string_view origin, ConfigSpelling spelling,
                         DType dtype);

}  // namespace rhea::checkpoint
