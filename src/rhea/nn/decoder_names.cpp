#include "rhea/nn/decoder_names.h"

namespace rhea::nn {

const DecoderNames kNativeNames{.prefix = "",
                                .tok_embeddings = "tok_embeddings",
                                .attention_norm = "attention_norm",
                                .attention = "attention",
                                .ffn_norm = "ffn_norm",
                                .feed_forward = "feed_forward",
                                .norm = "norm",
                                .lm_head = "lm_head",
                                .qkv = "qkv_linear",
                                .wq = "wq",
                                .wk = "wk",
                                .wv = "wv",
                                .wo = "wo",
                                .q_norm = "q_norm",
                                .k_norm = "k_norm",
                                .w1 = "w1",
                                .w2 = "w2",
                                .w3 = "w3"};

const DecoderNames kHuggingFaceNames{.prefix = "model",
                                     .tok_embeddings = "embed_tokens",
                                     .attention_norm = "input_layernorm",
                                     .attention = "self_attn",
                                     .ffn_norm = "post_attention_layernorm",
                                     .feed_forward = "mlp",
                                     .norm = "norm",
                                     .lm_head = "lm_head",
                                     .qkv = "",
                                     .wq = "q_proj",
                                     .wk = "k_proj",
                                     .wv = "v_proj",
                                     .wo = "o_proj",
                                     .q_norm = "q_norm",
                                     .k_norm = "k_norm",
                                     .w1 = "gate_proj",
                                     .w2 = "down_proj",
                                     .w3 = "up_proj"};

}  // namespace rhea::nn
