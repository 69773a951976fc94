// What the builders of rows share: reading common fields, and the Llama decoder that they change.
#pragma once
#include <functional>
#include <vector>

#include "rhea/models/decoder_sizes.h"
#include "rhea/models/hf/fields.h"
#include "rhea/models/hf/rope.h"
#include "rhea/models/parts.h"

namespace rhea::models::hf {

// hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads (absent: the heads),
// head_dim (absent: their share of hidden_size), intermediate_size, vocab_size, the norm's eps,
// tie_word_embeddings; and fields that every file may have and that change nothing.
DecoderSizes read_sizes(Fields& fields);
// Of whole heads, also where head_dim is absent.
int64_t head_dim(const DecoderSizes& sizes);

// Our name (nn/activation.h) of what the field says; an error lists the known ones.
std::string read_activation(Fields& fields, std::string_view name = "hidden_act");

// A norm's eps (rms_norm_eps or what the row calls it): in [0, 1]; absent: 1e-5.
double read_eps(Fields& fields);

// A number that must be above 0; the second gives 0 where it is null or absent.
double read_positive(Fields& fields, std::string_view name);
double maybe_positive(Fields& fields, std::string_view name);

// The initial distributions of this backend: embedding normal 1, head truncated D^-0.5, projections
// truncated 0.02, those that write to the residual stream and the up projection scaled by depth.
InitRules init_rules(int64_t dim);

// Llama's decoder in these sizes under `names`, with experts where the sizes have some.
nn::Decoder::Config llama_decoder(const DecoderSizes& sizes, const nn::RopeFields& rope,
                                  const nn::DecoderNames& names = nn::kHuggingFaceNames);

// Calls `change` with every block, its attention and its number.
void for_each_block(nn::Decoder::Config& model,
                    const std::function<void(nn::TransformerBlock::Config&, nn::Attention::Config&,
                                             int64_t)>& change);

// Which layers have a sliding window: `layer_types` of the file, else `rule` of the layer number.
// Throws Error where the file names such layers and there is no window (0).
std::vector<bool> read_sliding_layers(Fields& fields, int64_t n_layers, int64_t window,
                                      const std::function<bool(int64_t)>& rule);
// sliding_window of the file, at least `lowest`; 0 where it is null or absent.
int64_t read_window(Fields& fields, int64_t lowest = 1);
void set_windows(nn::Decoder::Config& model, int64_t window, const std::vector<bool>& sliding);
// Which rotary embedding each layer has.
void set_ropes(nn::Decoder::Config& model, const LayerRopes& ropes,
               const std::vector<bool>& sliding);
// Norms of q and k over the whole width of their projections.
void norm_full_width(nn::Decoder::Config& model, const DecoderSizes& sizes);
// Qwen's: only with use_sliding_window, and then, where layer_types does not say, in the layers
// from max_window_layers on, or in every other one before it (Qwen2-MoE).
enum class QwenWindows { from, even_before };
void read_qwen_windows(Fields& fields, nn::Decoder::Config& model,
                       QwenWindows windows = QwenWindows::from);
// Every activation of the feed-forwards.
void set_activation(nn::Decoder::Config& model, const std::string& activation);

// Replaces gated feed-forwards by w2(activation(w1 x)) or another of that form. w1 starts as an up
// projection where the model's names call it so.
void set_plain_feed_forward(nn::Decoder::Config& model, Slot<nn::PlainFeedForward::Config> form);
void set_plain_feed_forward(nn::Decoder::Config& model, const std::string& activation);

// Replaces split projections by one joined matrix, and gate and up likewise.
void join_qkv(nn::Decoder::Config& model);
void join_gate_up(nn::Decoder::Config& model);

}  // namespace rhea::models::hf
