// The decoder-only transformer: embedding, pre-norm blocks, norm, head.
#pragma once
#include <string_view>
#include <vector>

#include "rhea/nn/attention.h"
#include "rhea/nn/modules.h"

namespace rhea::nn {

// What a family calls the parts; FQNs of parameters and of config nodes are made of these.
struct DecoderNames {
  std::string_view prefix;  // before everything but the head: "" or "model"
  std::string_view tok_embeddings, attention_norm, attention, ffn_norm, feed_forward, norm, lm_head;
  std::string_view qkv;  // scope of the three projections, "" = the attention's own
  std::string_view wq, wk, wv, wo, q_norm, k_norm;
  std::string_view w1, w2, w3;
};
extern const DecoderNames kNativeNames;       // torchtitan's
extern const DecoderNames kHuggingFaceNames;  // of published Llama and Qwen3 files

struct TransformerBlock {
  // h = x + attention(norm(x)); h + feed_forward(norm(h))
  struct Config : rhea::Config {
    const DecoderNames* names = nullptr;
    Slot<RMSNorm::Config> attention_norm, ffn_norm;
    Slot<Attention::Config> attention;
    Slot<FeedForward::Config> feed_forward;
    virtual Value forward(Trace& trace, Value x_TD) const;
    void fields(Visitor& v) override;
  };
};

struct Decoder {
  struct Config : rhea::Config {
    const DecoderNames* names = nullptr;
    bool tie_word_embeddings = false;
    Slot<Embedding::Config> tok_embeddings;
    std::vector<Slot<TransformerBlock::Config>> layers;
    Slot<RMSNorm::Config> norm;
    Slot<Linear::Config> lm_head;

    int64_t vocab_size() const { return tok_embeddings->num_embeddings; }
    // Hidden states after the last norm, h_TD.
    virtual Value forward(Trace& trace) const;
    // The head's weight w_VD: the embedding's when tied.
    virtual Value head_weight(Trace& trace) const;
    void fields(Visitor& v) override;
  };
};

// Sum over labels != -100 of the cross entropy, times batch.loss_scale: f32 scalar. `num_chunks` 0:
// whole logits.
Value language_model_loss(Trace& trace, const Decoder::Config& model, int64_t num_chunks);
// Logits f32 [T, V].
Value logits(Trace& trace, const Decoder::Config& model);

}  // namespace rhea::nn
