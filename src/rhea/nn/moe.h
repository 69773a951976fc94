// Mixture of experts: a router that gives every token to a few of many feed-forwards.
//
// T tokens, D model dim, E experts, k experts of a token, R = T k rows in the order of experts,
// F hidden dim of an expert
#pragma once
#include "rhea/nn/feed_forward.h"
#include "rhea/ops/route/route.h"

namespace rhea::nn {

// What a family calls the parts of a mixture, below the mixture's own scope.
struct MoeNames {
  std::string_view gate = "gate";  // scope of the router's weight and bias
  // Of the constant per expert.
  std::string_view correction_bias = "gate.e_score_correction_bias";
  // The matrices of SplitExperts. In checkpoints "<experts>.<e>.<w1>.weight" for each expert e, or,
  // `stacked`, one tensor "<experts>.<w1>" for all of them.
  std::string_view experts = "experts";
  // Gate, output and up projection of an expert.
  std::string_view w1 = "gate_proj", w2 = "down_proj", w3 = "up_proj";
  bool stacked = false;  // all experts in one tensor
  // The tensors of JoinedExperts.
  std::string_view w13 = "experts.gate_up_proj", w2_joined = "experts.down_proj";
  // Scopes of the feed-forward that all tokens take and of its gate.
  std::string_view shared = "shared_experts", shared_gate = "shared_expert_gate";
};
// Those of most published files.
extern const MoeNames kHuggingFaceMoeNames;
extern const MoeNames kNativeMoeNames;  // torchtitan's

struct Router {
  // Which experts a token goes to and with what weight, all in f32:
  //   s = score of z = x w^T (+ b): softmax or sigmoid over all experts; or the softmax over the
  //       chosen ones only; or phimoe's sparsemixer
  //   choice = s + correction bias, in the best groups only; the k largest, ties to the lower index
  //   weight = s of the chosen (without the bias), normalised to sum 1 when asked, times scale
  struct Config : rhea::Config {
    const MoeNames* names = &kHuggingFaceMoeNames;  // what the family calls the parts
    int64_t num_experts = 0, top_k = 1;
    Slot<Linear::Config> gate;  // dim -> num_experts, in f32
    std::string score = "softmax";
    // A constant per expert that takes part in the choice only; an own dim 0 of 1 in some files.
    bool correction_bias = false, correction_bias_is_row = false;
    // Groups of neighbouring experts; only the `top_groups` best stay. A group is as good as its
    // best expert (max: experts of other groups then count 0) or its best two (top2: they are
    // never chosen before one that stays).
    int64_t num_groups = 1, top_groups = 1;
    std::string group_score = "top2";
    bool normalize = false;
    double normalize_min = 0;  // the sum is at least this; 0: 1e-20 is added instead
    double scale = 1;
    double jitter = 0;  // sparsemixer: experts further below the best than this share drop out

    // The experts of every token.
    struct Result {
      Value weights_Tk;  // f32
      Value experts_Tk;  // i32
    };
    // Its values, for nn::call.
    template <class F>
    friend void for_each_value(const Trace&, Result& r, const F& f) {
      f(r.weights_Tk), f(r.experts_Tk);
    }
    virtual Result forward(Trace& trace, Value x_TD) const;
    void fields(Visitor& v) override;

   private:
    Result chosen_by_score(Trace& trace, Value z_TE) const;
    Result sparsemixer(Value z_TE) const;
    // Values and indices of the top_k largest, or of the experts whose turn it is.
    std::vector<Value> best(Trace& trace, Value choice_TE) const;
    Value allowed_experts(Value choice_TE) const;
  };
};

// Its values, for nn::call.
template <class F>
void for_each_value(const Trace&, ops::ExpertOrder& order, const F& f) {
  for (Value* value : {&order.slots_R, &order.rows_Tk, &order.experts_R, &order.counts_E})
    f(*value);
}

struct Experts {
  // x_RD -> y_RD, every row by the expert that `order` says.
  struct Config : rhea::Config {
    const MoeNames* names = &kHuggingFaceMoeNames;  // what the family calls the parts
    int64_t num_experts = 0;
    int64_t top_k = 1;  // experts of a token
    int64_t dim = 0, hidden_dim = 0;
    virtual Value forward(Trace& trace, Value x_RD, const ops::ExpertOrder& order) const = 0;
    void fields(Visitor& v) override;
  };
};

struct SplitExperts {
  // w2(activation(w1 x) * (w3 x)) with w1, w3 [E,F,D] and w2 [E,D,F].
  struct Config : Experts::Config {
    std::string activation = "silu";
    InitConfig w1_init, w2_init, w3_init;
    // The three tensors.
    struct Weights {
      Value w1_EFD, w2_EDF, w3_EFD;  // in the compute dtype
    };
    // The parameters of the open scope.
    Weights weights(Trace& trace) const;
    Value forward(Trace& trace, Value x_RD, const ops::ExpertOrder& order) const override;
    void fields(Visitor& v) override;

   protected:
    // One of them, [E, rows, columns], under its name in MoeNames.
    Value weight(Trace& trace, std::string_view name, int64_t rows, int64_t columns,
                 const InitConfig& init) const;
  };
};

struct JoinedExperts {
  // The experts of a layer as checkpoints of some families hold them, gate and up as one tensor.
  struct Config : Experts::Config {
    std::string activation = "silu";  // "clamped_swiglu": gpt-oss
    // false: w13 [E,2F,D], gate rows first, and w2 [E,D,F]. true: w13 [E,D,2F] with gate and up in
    // turn, and w2 [E,F,D].
    bool transposed = false;
    bool bias = false;
    double alpha = 1.702, limit = 7;  // clamped_swiglu
    InitConfig w13_init, w2_init;
    Value forward(Trace& trace, Value x_RD, const ops::ExpertOrder& order) const override;
    void fields(Visitor& v) override;

   private:
    Value product(Trace& trace, std::string_view name, Value x, int64_t width,
                  const InitConfig& init, const ops::ExpertOrder& order) const;
    Value hidden(Value y) const;
  };
};

struct Dispatcher {
  // How tokens get to the experts and back.
  struct Config : rhea::Config {
    // x_TD -> x_RD: the rows in the order of experts.
    virtual Value forward(Trace& trace, Value x_TD, const ops::ExpertOrder& order) const;
    // y_RD -> y_TD: of every token the sum of its rows times their weights.
    virtual Value combine(Trace& trace, Value y_RD, const ops::ExpertOrder& order,
                          Value weights_Tk) const;
    void fields(Visitor& v) override;
  };
};

struct RoutedExperts {
  // y_TD: of every token the sum over its experts, ascending by number, of weight * expert(x).
  struct Config : rhea::Config {
    Slot<Dispatcher::Config> token_dispatcher;
    Slot<Experts::Config> inner_experts;
    virtual Value forward(Trace& trace, Value x_TD, const Router::Config::Result& routed) const;
    void fields(Visitor& v) override;
  };
};

struct MoE {
  // routed_experts(x) + shared(x) * sigmoid(shared_gate(x)). An empty slot of shared experts leaves
  // that part out.
  struct Config : Branch::Config {
    Slot<Router::Config> router;
    Slot<RoutedExperts::Config> routed_experts;
    Slot<Branch::Config> shared_experts;
    bool gates_shared = false;
    Slot<Linear::Config> shared_gate;  // unused without gates_shared
    // Balance without an auxiliary loss: before each optimizer step the router's correction bias
    // moves by this much towards the experts that had fewer tokens than the mean
    // (Trace::balance). Absent: it stays as it is.
    std::optional<double> load_balance_coeff;
    Value forward(Trace& trace, Value x_TD) const override;
    int64_t hidden_dim() const override { return routed_experts->inner_experts->hidden_dim; }
    void fields(Visitor& v) override;
  };
};

}  // namespace rhea::nn
