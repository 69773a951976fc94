// Reads a published config.json, in the spelling of Transformers 4 and 5.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/models/hf/published_config.h"

namespace rhea::models::hf {

// Every field is used, known to have no effect on training, or an error that names it. Absent
// fields take the class default of the model type. Throws Error naming file, field and value.
PublishedConfig read_config(const std::filesystem::path& file);
PublishedConfig parse_config(std::string_view json, std::string_view origin);

// What notes says, as lines of the log.
void log_notes(const PublishedConfig& config, std::string_view origin);

// Fields in which the decoder differs from a published config, one line each with both values;
// empty when weights of the one may be loaded into the other.
std::vector<std::string> differences(const nn::Decoder::Config& model,
                                     const PublishedConfig& published);

// Values that two decoders give to fields that both have, by path; what a run may choose for itself
// (masks, initialisation, fusing) is left out.
std::vector<std::string> tree_differences(const nn::Decoder::Config& ours,
                                          const nn::Decoder::Config& theirs);

// The config.json under which other tools load a native decoder's published form (Llama, or Qwen3
// when heads of q and k are normalised). dtype is float32; an export sets its own.
std::string write_config(const nn::Decoder::Config& model);

}  // namespace rhea::models::hf
