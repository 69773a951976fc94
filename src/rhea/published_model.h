// A published model folder in memory: its decoder, and its weights bound to the parameters of a
// trace.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rhea/model_files.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/nn/decoder.h"

namespace rhea {

class PublishedModel {
 public:
  // Reads the config and the weights of `folder`, Hugging Face files or a checkpoint of rhea train,
  // as f32 under Hugging Face's names. Throws Error naming the file and what is wrong with it.
  explicit PublishedModel(const std::filesystem::path& folder);

  const ModelFolder& files() const { return files_; }
  const models::hf::PublishedConfig& published() const { return published_; }
  const nn::Decoder::Config& decoder() const { return decoder_; }
  const std::vector<nn::Parameter>& parameters() const { return parameters_; }
  // f32 data of parameters()[i].
  float* data(size_t i) const { return data_[i]; }
  float* data(const std::string& fqn) const;

 private:
  ModelFolder files_;
  models::hf::PublishedConfig published_;
  nn::Decoder::Config decoder_;
  std::vector<nn::Parameter> parameters_;
  std::shared_ptr<void> block_;
  std::vector<float*> data_;
};

}  // namespace rhea
