// A GGUF file in Hugging Face's terms: its config, its tensors under their published names, its
// tokenizer.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rhea/base/dtype.h"
#include "rhea/components/gguf/file.h"

namespace rhea::gguf {

// `read` fills the row-major bytes of the whole tensor in a float dtype, rounded once.
struct PublishedTensor {
  std::string name;
  std::vector<int64_t> shape;
  const Tensor* source = nullptr;
  std::function<void(DType dtype, std::span<std::byte> out)> read;
};

// Texts of the files beside the weights; empty: the GGUF file holds nothing for one.
struct PublishedFiles {
  std::string config_json;
  std::string generation_config_json;
  std::string tokenizer_json;
  std::string tokenizer_config_json;
  std::string chat_template;
};

// The model of `file` (which must outlive the tensors). Undoes what llama.cpp's converter does to
// weights: the row order of q and k, norms stored as 1 + w, experts joined into one tensor. Throws
// Error naming what is not supported: an architecture, a metadata key that changes the computation,
// a tensor without a place, a type that is not read.
std::vector<PublishedTensor> published_tensors(const File& file);
// config.json in the spelling of Transformers 5, generation_config.json and the tokenizer. Throws
// as published_tensors does, and for a tokenizer kind that is not known.
PublishedFiles published_files(const File& file);

// The general.architecture values that are supported, for messages.
std::string supported_architectures();

}  // namespace rhea::gguf
