// How native parameter names and Hugging Face keys relate: one description, used for loading and
// for export.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rhea::checkpoint {

// One Hugging Face tensor that holds a native tensor, or some of its rows. A row has the length of
// the product of shape[1:]; row i of the Hugging Face tensor is row `rows[i]` of the native one.
// Empty `rows`: all of them in order.
struct HfPart {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<int64_t> rows = {};
};

// A linear layer with a LoRA adapter: alpha / rank * B A is added to the weight <module>.weight
// ([in, out] when `transposed`), with A and B in <module>.lora_a.weight and <module>.lora_b.weight.
struct Adapter {
  std::string module;
  int64_t rank = 0;
  double alpha = 0;
  bool transposed = false;
};

// Plain functions and data, so that a model folder can fill it from its rule table.
struct KeyMap {
  // The parts that together make up `native` of this shape. Empty: the parameter has no Hugging
  // Face key: an export warns and leaves it out, an import lets it be and lists it. Throws Error
  // for a name that the model does not have.
  std::function<std::vector<HfPart>(const std::string& native, std::span<const int64_t> shape)>
      to_hf;
  // (copy, original): a key that a tied model may repeat in its files, such as {"lm_head.weight",
  // "model.embed_tokens.weight"}. Equal bytes are accepted on import; an export does not write it.
  std::vector<std::pair<std::string, std::string>> tied = {};
  // Key of the output head; when a file lacks it, the error says that tying would be the remedy.
  std::string head = "lm_head.weight";
  // Keys of old files that hold no parameter (rotary tables). Null: none.
  std::function<bool(const std::string& hf)> ignorable = nullptr;
  // Their tensors have no Hugging Face key; files of a base model lack them, and so do checkpoints.
  std::vector<Adapter> adapters = {};
};

// Names as they are: the models of models/hf keep Hugging Face's.
KeyMap identity_key_map();

// Rows of a q or k projection (weight or bias): Hugging Face keeps the two halves of each head one
// after the other, native llama3 keeps the pairs adjacent: row h*H + j*(H/2) + i there is row h*H +
// 2i + j here.
std::vector<int64_t> half_split_rows(int64_t num_rows, int64_t head_dim);

}  // namespace rhea::checkpoint
