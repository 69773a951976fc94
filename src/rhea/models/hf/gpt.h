// What the builders of GPT's relatives share: changes of Llama's decoder towards LayerNorm, plain
// feed-forwards, joined projections and other positions.
#pragma once
#include "rhea/models/hf/build.h"

namespace rhea::models::hf {

// What files of GPT-2 and its next relatives call Llama's fields.
const std::vector<Spelling>& gpt_spellings();

// hidden size / heads; an error where that is no whole number.
int64_t share_of_heads(const Fields& fields, const DecoderSizes& sizes);

// The rotary embedding of files that give `rotary_dim` and nothing else about it.
Rope read_rotary_dim(Fields& fields, int64_t head_dim, int64_t num_positions);

// Sizes of a row with gpt_spellings(): n_embd, n_layer, n_head, n_inner (null: 4 n_embd),
// n_positions, vocab_size, layer_norm_epsilon, tie_word_embeddings, attn_pdrop, resid_pdrop,
// embd_pdrop. One kv head per query head.
struct GptSizes : DecoderSizes {
  int64_t num_positions = 0;
};
GptSizes read_gpt_sizes(Fields& fields);

// LayerNorm in all places of the blocks and before the head.
void use_layer_norms(nn::Decoder::Config& model, const nn::LayerNorm::Config& norm);
// x + attention(norm(x)) + feed_forward(norm(x)) with one norm.
void use_one_parallel_norm(nn::Decoder::Config& model);
// One matrix for q, k and v; `by_kv_head`: see nn::JoinedQKV.
void join_qkv(nn::Decoder::Config& model, bool by_kv_head);
void drop_rope(nn::Decoder::Config& model);
// Biases by distance in the place of rotation.
void use_alibi(nn::Decoder::Config& model, const nn::Alibi::Config& alibi);
// A learned row for each position, the first of which is row `offset`.
void use_learned_positions(nn::Decoder::Config& model, int64_t num_positions, int64_t offset = 0);

}  // namespace rhea::models::hf
