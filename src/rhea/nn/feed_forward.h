// The branches of a block that treat every token alone.
//
// T tokens, D model dim, F hidden dim
#pragma once
#include "rhea/nn/modules.h"

namespace rhea::nn {

struct Branch {
  // What a transformer block adds to its residual stream: x_TD -> y_TD. Attention of any kind, the
  // feed-forward and mixtures of experts are branches, so each slot of a block takes any of them.
  struct Config : rhea::Config {
    virtual Value forward(Trace& trace, Value x_TD) const = 0;
    // Heads * (elements of a query + elements of a value): what a pair of tokens costs in
    // attention. 0 where tokens do not meet.
    virtual int64_t score_width() const { return 0; }
    // Generation passes the prompt token by token, too: a recurrence.
    virtual bool one_token_at_a_time() const { return false; }
    // Hidden width of a feed-forward, for reports; 0 where there is none.
    virtual int64_t hidden_dim() const { return 0; }
  };
};

struct FeedForward {
  // w2(activation(w1 x) * (w3 x)); the children's names come from the model (DecoderNames)
  struct Config : Branch::Config {
    const DecoderNames* names = &kNativeNames;  // what the family calls the parts
    std::string activation = "silu";            // one of activations()
    Slot<Linear::Config> w1, w2, w3;
    Value forward(Trace& trace, Value x_TD) const override;
    int64_t hidden_dim() const override { return w1->out_features; }
    void fields(Visitor& v) override;
  };
};

struct JoinedFeedForward {
  // The same with w1 and w3 stored as one matrix [2F, D], gate rows first
  struct Config : Branch::Config {
    const DecoderNames* names = &kNativeNames;  // what the family calls the parts
    std::string activation = "silu";            // one of activations()
    Slot<Linear::Config> w13, w2;
    Value forward(Trace& trace, Value x_TD) const override;
    int64_t hidden_dim() const override { return w2->in_features; }
    void fields(Visitor& v) override;
  };
};

struct PlainFeedForward {
  // w2(activation(w1 x))
  struct Config : Branch::Config {
    const DecoderNames* names = &kNativeNames;  // what the family calls the parts
    std::string activation = "gelu";            // one of activations()
    Slot<Linear::Config> w1, w2;
    Value forward(Trace& trace, Value x_TD) const override;
    int64_t hidden_dim() const override { return w1->out_features; }
    void fields(Visitor& v) override;

   protected:
    // The activation of w1 x.
    virtual Value activated(Trace& trace, Value x_TF) const;
  };
};

struct XieluFeedForward {
  // w2(xielu(w1 x)) with two learned numbers, p = softplus(alpha_p) and n = 0.5 +
  // softplus(alpha_n): p x^2 + x/2 for x > 0, n (exp(min(x, eps)) - 1 - x) + x/2 otherwise; in
  // f32. Files hold 0.5 and eps as beta and eps, which are not trained.
  struct Config : PlainFeedForward::Config {
   protected:
    Value activated(Trace& trace, Value x_TF) const override;
  };
};

// activation(gate) * up
Value gated(std::string_view activation, Value gate, Value up);

}  // namespace rhea::nn
