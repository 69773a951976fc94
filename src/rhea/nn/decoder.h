// The decoder-only transformer: embedding, blocks, norm, head.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "rhea/nn/attention.h"
#include "rhea/nn/trainable.h"

namespace rhea::nn {

struct TransformerBlock {
  // h = x + post(attention(pre(x))); h + post(feed_forward(pre(h))). An empty norm is left out.
  // `parallel`: both branches read x, x + attention(pre(x)) + feed_forward(pre(x)), and without a
  // norm of its own the feed-forward takes the attention's.
  struct Config : rhea::Config {
    const DecoderNames* names = &kNativeNames;  // what the family calls the parts
    Slot<Norm::Config> attention_norm, post_attention_norm;
    Slot<Branch::Config> attention;
    Slot<Norm::Config> ffn_norm, post_ffn_norm;
    Slot<Branch::Config> feed_forward;
    bool parallel = false;
    double residual_multiplier = 1;  // of what a branch adds
    virtual Value forward(Trace& trace, Value x_TD) const;
    void fields(Visitor& v) override;

   protected:
    // post(branch(x)) * residual_multiplier
    Value branch(Trace& trace, std::string_view name, const Branch::Config& module,
                 std::string_view post_name, const Slot<Norm::Config>& post, Value x_TD) const;
  };
};

struct Decoder {
  // The whole model: tokens [T] -> hidden states h_TD, then the head.
  struct Config : rhea::Config {
    const DecoderNames* names = &kNativeNames;  // what the family calls the parts
    bool tie_word_embeddings = false;
    Slot<Embedding::Config> tok_embeddings;
    double embedding_multiplier = 1;
    // The factor is rounded to the compute dtype before the product, as Gemma does; otherwise only
    // the product is.
    bool round_embedding_multiplier = false;
    bool learned_positions = false;  // pos_embeddings[position + position_offset] is added
    Slot<Embedding::Config> pos_embeddings;
    int64_t position_offset = 0;
    Slot<Norm::Config> embedding_norm;
    // The blocks have another width than embedding and head: project_in after the embedding,
    // project_out before the head.
    bool projected = false;
    Slot<Linear::Config> project_in, project_out;
    std::vector<Slot<TransformerBlock::Config>> layers;
    Slot<Norm::Config> norm;
    Slot<Linear::Config> lm_head;
    double logit_scale = 1;
    double logit_softcap = 0;  // c tanh(logit / c), 0 = none

    // Layers that published files hold behind the last one, for predicting more than one token;
    // they are not part of this model.
    int64_t num_mtp_layers = 0;

    // Which parameters are trained; empty: all.
    std::vector<TrainableRule> trainable;

    // Rows of the embedding.
    int64_t vocab_size() const { return tok_embeddings->num_embeddings; }
    // "model.embed_tokens.weight"
    std::string embedding_fqn() const;
    // The logits are one product, then at most a bias and a cap: a loss can form them in chunks.
    bool has_plain_head() const {
      const Linear::Config& head = *lm_head;
      return typeid(head) == typeid(Linear::Config) && !head.replaced;
    }
    // Longest row that the rotary and learned positions allow; 0 = any.
    int64_t max_positions() const;
    // Hidden states after the last norm, h_TD.
    virtual Value forward(Trace& trace) const;
    // The head's weight w_VD: the embedding's when tied.
    virtual Value head_weight(Trace& trace) const;
    void fields(Visitor& v) override;

   private:
    Value embed(Trace& trace) const;
  };
};

// Sum over labels != -100 of the cross entropy, times batch.loss_scale: f32 scalar. `num_chunks` 0:
// whole logits. Other losses: nn/losses.h.
Value language_model_loss(Trace& trace, const Decoder::Config& model, int64_t num_chunks);
// The head's weight; no value where the head is no plain layer or from outside: it makes the logits
// itself. Throws Error where an override gave a tied model a head that is no plain layer.
Value plain_head_weight(Trace& trace, const Decoder::Config& model);
// What the head adds to its product, f32 [V]; none where it has no bias. The head's scope must be
// open.
std::optional<Value> head_bias(Trace& trace, const Decoder::Config& model);
// Logits f32 [T, V] of hidden states and that weight; the head's scope must be open.
Value head_logits(Trace& trace, const Decoder::Config& model, Value h_TD, Value w_VD);
// Logits f32 [T, V] of the batch; with `rows_R`, i32, f32 [R, V] of those tokens only.
Value logits(Trace& trace, const Decoder::Config& model, std::optional<Value> rows_R = {});

}  // namespace rhea::nn
