// The in-tree losses and their look-up.
#include "rhea/nn/losses.h"

#include "rhea/base/error.h"
#include "rhea/base/rethrow.h"
#include "rhea/ops/ops.h"

namespace rhea::nn {
namespace {

template <class C>
bool is_a(const LossConfig& config) {
  return dynamic_cast<const C*>(&config) != nullptr;
}

Value cross_entropy(const LossInputs& in, const LossConfig&) {
  return ops::cross_entropy(in.logits(), in.labels_T, in.scale);
}

Value chunked(const LossInputs& in, const LossConfig& config) {
  const auto& options = static_cast<const ChunkedLossConfig&>(config);
  if (!is_a<CrossEntropyLossConfig>(*options.loss_fn))
    throw Error(
        "loss.loss_fn is a {}, and chunks are made of the cross entropy only; use that loss itself "
        "as `loss`",
        type_name(*options.loss_fn));
  if (!in.model.has_plain_head()) return cross_entropy(in, config);
  return ops::linear_cross_entropy(in.h_TD, in.w_VD, in.labels_T, in.scale, options.num_chunks,
                                   head_bias(in.trace, in.model), in.model.logit_softcap);
}

}  // namespace

Value LossInputs::logits() const { return head_logits(trace, model, h_TD, w_VD); }

NamedTable<Loss>& losses() {
  static NamedTable<Loss> table = [] {
    NamedTable<Loss> made("loss");
    made.add({"CrossEntropyLoss", is_a<CrossEntropyLossConfig>, cross_entropy}, kInTree);
    made.add({"ChunkedLossWrapper", is_a<ChunkedLossConfig>, chunked}, kInTree);
    return made;
  }();
  return table;
}

Value traced_loss(Trace& trace, const Decoder::Config& model, const LossConfig& config) {
  // The last one: a user's loss may derive from an in-tree one.
  const Loss* found = nullptr;
  losses().for_each([&](const Loss& loss) {
    if (loss.holds(config)) found = &loss;
  });
  if (found == nullptr)
    throw Error("loss: nothing says how a {} is traced; register it with Plugin::loss; known: {}",
                type_name(config), joined(losses().names()));
  const Value h_TD = call(trace, "", model);
  const Value w_VD = plain_head_weight(trace, model);
  const Value labels_T = trace.graph().input(kLabels, {DType::i32, {trace.options().num_tokens}});
  const Value scale = trace.graph().input(kLossScale, {DType::f32, {}});
  const ir::Scope scope(trace.graph(), model.names->lm_head);
  Value loss;
  try {
    loss = found->trace({trace, model, h_TD, w_VD, labels_T, scale}, config);
  } catch (...) {
    rethrow_with("loss " + found->name);
  }
  const bool is_ours = loss.valid() && loss.graph == &trace.graph();
  if (!is_ours || loss.type() != ir::Type{DType::f32, {}})
    throw Error("loss {} traced {}, expected an f32 scalar of the graph that is traced",
                found->name,
                !loss.valid() ? "nothing"
                : is_ours     ? to_string(loss.type())
                              : "a value of another graph");
  return loss;
}

}  // namespace rhea::nn
