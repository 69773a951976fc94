// A published model folder in memory: its decoder, and its weights bound to the parameters of a
// trace.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "rhea/ir/graph.h"
#include "rhea/model_files.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/nn/decoder.h"
#include "rhea/parameter_memory.h"

namespace rhea {

class ThreadPool;

class PublishedModel {
 public:
  // Reads the config and the weights of `folder`, Hugging Face files or a checkpoint of rhea train,
  // as `dtype` (constants are f32 always) under Hugging Face's names, several tensors at once with
  // a pool. Throws Error naming the file and what is wrong with it.
  explicit PublishedModel(const std::filesystem::path& folder, ThreadPool* pool = nullptr,
                          DType dtype = DType::f32);

  const ModelFolder& files() const { return files_; }
  const models::hf::PublishedConfig& published() const { return published_; }
  const nn::Decoder::Config& decoder() const { return decoder_; }
  const std::vector<nn::Parameter>& parameters() const { return memory_.parameters(); }
  // The parameter `fqn`, for an input of a graph; throws as ParameterMemory::data does where the
  // graph reads another type than the dtype above gives.
  const void* data(const std::string& fqn, const ir::Type& type) const {
    return memory_.data(fqn, type);
  }
  // The stock parts of every parameter, under their names.
  const std::vector<checkpoint::NamedTensor>& tensors() const { return memory_.tensors(); }

  // Throws ExitError with out_of_memory when the memory that is left does not hold what a run of
  // `graph` needs besides the weights: its other inputs, its results and its arena. Call it before
  // they are allocated; `what` and `remedy` as require_memory has them.
  void require_memory_of(const ir::Graph& graph, const ThreadPool& pool, const std::string& what,
                         const std::string& remedy) const;

 private:
  ModelFolder files_;
  models::hf::PublishedConfig published_;
  nn::Decoder::Config decoder_;
  ParameterMemory memory_;
};

}  // namespace rhea
