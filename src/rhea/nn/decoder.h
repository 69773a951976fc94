// The decoder-only transformer: embedding, pre-norm blocks, norm, head.
#pragma once
#include <string_view>
#include <vector>

#include "rhea/nn/attention.h"
#include "rhea/nn/modules.h"

namespace rhea::nn {

struct TransformerBlock {
  // h = x + attention(norm(x)); h + feed_forward(norm(h))
  struct Config : rhea::Config {
    const DecoderNames* names = &kNativeNames;
    Slot<RMSNorm::Config> attention_norm, ffn_norm;
    Slot<Attention::Config> attention;
    Slot<FeedForward::Config> feed_forward;
    virtual Value forward(Trace& trace, Value x_TD) const;
    void fields(Visitor& v) override;
  };
};

struct Decoder {
  struct Config : rhea::Config {
    const DecoderNames* names = &kNativeNames;
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
