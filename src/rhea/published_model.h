// A published model folder in memory: its decoder, and its weights bound to the parameters of a
// trace.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rhea/models/hf/config_json.h"
#include "rhea/nn/decoder.h"

namespace rhea {

class PublishedModel {
 public:
  // Reads config.json and the weights of `folder` as f32. Throws Error naming the file and what is
  // wrong with it.
  explicit PublishedModel(const std::filesystem::path& folder);

  const models::hf::PublishedConfig& published() const { return published_; }
  const nn::Decoder::Config& decoder() const { return decoder_; }
  const std::vector<nn::Parameter>& parameters() const { return parameters_; }
  // f32 data of parameters()[i].
  float* data(size_t i) const { return data_[i]; }
  float* data(const std::string& fqn) const;

 private:
  models::hf::PublishedConfig published_;
  nn::Decoder::Config decoder_;
  std::vector<nn::Parameter> parameters_;
  std::shared_ptr<void> block_;
  std::vector<float*> data_;
};

}  // namespace rhea
