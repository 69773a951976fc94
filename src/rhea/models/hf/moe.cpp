#include "rhea/models/hf/moe.h"

namespace rhea::models::hf {
namespace {

constexpr int64_t kMostExperts = 1 << 16;

nn::FeedForward::Config shared_feed_forward(const Mixture& mixture, int64_t dim, int64_t layer,
                                            const nn::DecoderNames& names, const InitRules& init) {
  nn::FeedForward::Config made;
  made.names = &names;
  made.activation = mixture.activation;
  made.w1 = linear(dim, mixture.shared_dim, mixture.shared_bias, init.w1);
  made.w3 = linear(dim, mixture.shared_dim, mixture.shared_bias, init.w3(layer));
  made.w2 = linear(mixture.shared_dim, dim, mixture.shared_bias, init.w2(layer));
  return made;
}

template <class C>
C sized(C experts, const Mixture& mixture, int64_t dim) {
  experts.names = mixture.names;
  experts.num_experts = mixture.router.num_experts;
  experts.top_k = mixture.router.top_k;
  experts.dim = dim;
  experts.hidden_dim = mixture.hidden_dim;
  return experts;
}

Slot<nn::Experts::Config> experts_of(const Mixture& mixture, int64_t dim, int64_t layer,
                                     const InitRules& init) {
  if (mixture.joined != nullptr) {
    auto joined = sized(*mixture.joined, mixture, dim);
    joined.w13_init = init.w3(layer);
    joined.w2_init = init.w2(layer);
    return joined;
  }
  auto split = sized(nn::SplitExperts::Config(), mixture, dim);
  split.activation = mixture.activation;
  split.w1_init = init.w1;
  split.w3_init = init.w3(layer);
  split.w2_init = init.w2(layer);
  return split;
}

}  // namespace

int64_t read_experts(Fields& fields) { return fields.spelled("num_experts", kMostExperts); }

int64_t read_top_k(Fields& fields, int64_t num_experts) {
  const int64_t top_k = fields.spelled("num_experts_per_tok", 64);
  if (top_k > num_experts)
    throw fields.error(fmt::format("{} is {}, but there are {} experts",
                                   fields.name_of("num_experts_per_tok"), top_k, num_experts));
  return top_k;
}

void read_router_losses(Fields& fields) {
  for (const char* name : {"router_aux_loss_coef", "aux_loss_alpha"}) {
    // The class default is one that no file asked for.
    if (const auto value = fields.maybe_number(name); fields.given(name) && *value != 0)
      fields.warn(
          fmt::format("{} = {}: auxiliary losses of routers are not trained", name, *value));
  }
  fields.ignore({"output_router_logits", "seq_aux", "ep_size"});
  fields.only("moe_layer_freq", "1");
}

nn::Router::Config read_sigmoid_router(Fields& fields, int64_t num_experts) {
  nn::Router::Config router;
  router.num_experts = num_experts;
  router.top_k = read_top_k(fields, num_experts);
  router.score = "sigmoid";
  router.correction_bias = true;
  router.num_groups = fields.integer("n_group");
  router.top_groups = fields.integer("topk_group");
  if (num_experts % router.num_groups != 0 || router.top_groups > router.num_groups)
    throw fields.error(
        fmt::format("{} experts in n_group = {} groups, topk_group = {}: groups "
                    "must be equal, and no more may be kept than there are",
                    num_experts, router.num_groups, router.top_groups));
  if (num_experts / router.num_groups * router.top_groups < router.top_k)
    throw fields.error(fmt::format(
        "num_experts_per_tok is {}, but topk_group = {} groups hold {} experts", router.top_k,
        router.top_groups, num_experts / router.num_groups * router.top_groups));
  router.normalize = fields.flag("norm_topk_prob");
  router.scale = fields.number("routed_scaling_factor");
  fields.only("scoring_func", "\"sigmoid\"");
  fields.only("topk_method", "\"noaux_tc\"");
  return router;
}

void set_mixtures(nn::Decoder::Config& model, const Mixture& mixture,
                  const std::function<bool(int64_t)>& sparse) {
  const int64_t dim = model.tok_embeddings->embedding_dim;
  const InitRules init = init_rules(dim);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    if (!sparse(layer)) continue;
    nn::TransformerBlock::Config& block = *model.layers[i];
    nn::MoE::Config made;
    made.router = mixture.router;
    made.router->names = mixture.names;
    made.router->gate = linear(dim, mixture.router.num_experts, mixture.router.gate->bias, init.w1);
    made.routed_experts->inner_experts = experts_of(mixture, dim, layer, init);
    if (mixture.shared_dim > 0)
      made.shared_experts = shared_feed_forward(mixture, dim, layer, *block.names, init);
    made.gates_shared = mixture.shared_gate;
    if (mixture.shared_gate) made.shared_gate = linear(dim, 1, false, init.w1);
    block.feed_forward = made;
  }
}

}  // namespace rhea::models::hf
