// A published config.json as it was read: what models::Family::build makes a model of.
#pragma once
#include <string>
#include <vector>

#include "rhea/nn/decoder.h"

namespace rhea::models::hf {

// What the reader of a file has to say about it besides errors: one line of the log each.
struct Notes {
  std::vector<std::string> defaulted;  // "name = value" of fields that took the class default
  std::vector<std::string> warnings;   // one line each
};

// The model that a config.json describes.
struct PublishedConfig {
  std::string model_type;  // "llama"
  // Under Hugging Face's names, with the initial distributions of this backend.
  nn::Decoder::Config decoder;
  Notes notes;  // of the reader
};

}  // namespace rhea::models::hf
