// Reads a published config.json, in the spelling of Transformers 4 and 5.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "rhea/models/decoder_sizes.h"

namespace rhea::models::hf {

struct PublishedConfig {
  std::string model_type;  // "llama" or "qwen3"
  DecoderSizes sizes;
  nn::CosSinRoPE::Config rope;
};

// Every field is used, known to have no effect on training, or an error that names it. Absent
// fields take the class default of the model type. Throws Error naming file, field and value.
PublishedConfig read_config(const std::filesystem::path& file);
PublishedConfig parse_config(std::string_view json, std::string_view origin);

// The decoder under Hugging Face's names, with the initial distributions of this backend.
nn::Decoder::Config build(const PublishedConfig& config);

// Fields in which the decoder differs from a published config, one line each with both values;
// empty when weights of the one may be loaded into the other.
std::vector<std::string> differences(const nn::Decoder::Config& model,
                                     const PublishedConfig& published);

// The config.json under which other tools load the decoder's published form (Llama, or Qwen3 when
// heads of q and k are normalised). dtype is float32; an export sets its own.
std::string write_config(const nn::Decoder::Config& model);

}  // namespace rhea::models::hf
