// Reads a published config.json, in the spelling of Transformers 4 and 5.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/models/hf/fields.h"
#include "rhea/nn/decoder.h"

namespace rhea::models::hf {

struct PublishedConfig {
  std::string model_type;
  std::string json;  // the file's text, overrides applied: an export writes it back
  // Under Hugging Face's names, with the initial distributions of this backend.
  nn::Decoder::Config decoder;
  Notes notes;
};

// What a run puts in the place of a file's values; nothing: the file's value stays.
struct RunOverrides {
  std::optional<int64_t> dim, n_layers, n_heads, n_kv_heads, vocab_size, intermediate_size;
  std::optional<double> norm_eps, rope_theta;
  std::optional<int64_t> num_experts, num_experts_per_tok, moe_intermediate_size,
      decoder_sparse_step;
  std::optional<bool> norm_topk_prob;
  std::optional<std::string> attn_mask_type;  // causal or block_causal
};

// Every field is used, known to have no effect on training, or an error that names it. Absent
// fields take the class default of the model type. Throws Error naming file, field and value.
PublishedConfig read_config(const std::filesystem::path& file, const RunOverrides& overrides = {});
PublishedConfig parse_config(std::string_view json, std::string_view origin,
                             const RunOverrides& overrides = {});

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
