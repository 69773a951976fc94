// What a family calls the parts of a decoder.
#pragma once
#include <string_view>

namespace rhea::nn {

// FQNs of parameters and of config nodes are made of these. A family with names of its own changes
// a copy of one of the two below.
struct DecoderNames {
  std::string_view prefix;  // before everything but the head: "" or "model"
  // Tables of tokens and of learned positions, and the norm behind them.
  std::string_view tok_embeddings, positions, embedding_norm;
  // Between embedding, blocks and head of other widths.
  std::string_view project_in = "project_in", project_out = "project_out";
  std::string_view layers;  // "<layers>.<i>" is block i
  // In a block: the norm before attention, the one behind it, and attention itself.
  std::string_view attention_norm, post_attention_norm, attention;
  // The norms before and behind the feed-forward.
  std::string_view ffn_norm, post_ffn_norm;
  std::string_view feed_forward;   // "" = its projections lie in the block
  std::string_view norm, lm_head;  // behind the last block
  std::string_view qkv;            // scope of the three projections, "" = the attention's own
  std::string_view wqkv;           // the three as one matrix
  // Projections of attention, and the norms of query and key heads.
  std::string_view wq, wk, wv, wo, q_norm, k_norm;
  std::string_view w1, w2, w3;  // gate, output and up projection of the feed-forward
  std::string_view w13;         // gate and up as one matrix
};

// torchtitan's
inline constexpr DecoderNames kNativeNames{.prefix = "",
                                           .tok_embeddings = "tok_embeddings",
                                           .positions = "pos_embeddings",
                                           .embedding_norm = "embedding_norm",
                                           .layers = "layers",
                                           .attention_norm = "attention_norm",
                                           .post_attention_norm = "post_attention_norm",
                                           .attention = "attention",
                                           .ffn_norm = "ffn_norm",
                                           .post_ffn_norm = "post_ffn_norm",
                                           .feed_forward = "feed_forward",
                                           .norm = "norm",
                                           .lm_head = "lm_head",
                                           .qkv = "qkv_linear",
                                           .wqkv = "wqkv",
                                           .wq = "wq",
                                           .wk = "wk",
                                           .wv = "wv",
                                           .wo = "wo",
                                           .q_norm = "q_norm",
                                           .k_norm = "k_norm",
                                           .w1 = "w1",
                                           .w2 = "w2",
                                           .w3 = "w3",
                                           .w13 = "w13"};

// of published Llama and Qwen3 files
inline constexpr DecoderNames kHuggingFaceNames{.prefix = "model",
                                                .tok_embeddings = "embed_tokens",
                                                .positions = "embed_positions",
                                                .embedding_norm = "embed_layernorm",
                                                .layers = "layers",
                                                .attention_norm = "input_layernorm",
                                                .post_attention_norm = "post_attention_layernorm",
                                                .attention = "self_attn",
                                                .ffn_norm = "post_attention_layernorm",
                                                .post_ffn_norm = "post_feedforward_layernorm",
                                                .feed_forward = "mlp",
                                                .norm = "norm",
                                                .lm_head = "lm_head",
                                                .qkv = "",
                                                .wqkv = "qkv_proj",
                                                .wq = "q_proj",
                                                .wk = "k_proj",
                                                .wv = "v_proj",
                                                .wo = "o_proj",
                                                .q_norm = "q_norm",
                                                .k_norm = "k_norm",
                                                .w1 = "gate_proj",
                                                .w2 = "down_proj",
                                                .w3 = "up_proj",
                                                .w13 = "gate_up_proj"};

}  // namespace rhea::nn
