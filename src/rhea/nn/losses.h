// What a run minimises: the table of losses, and the loss of a run as a graph.
//
// T tokens, D model dim, V vocabulary
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "rhea/base/named_table.h"
#include "rhea/config/sections/loss.h"
#include "rhea/nn/decoder.h"

namespace rhea::nn {

// What a loss is made of. It is a sum over the labels that are not -100, times `scale`, which is 1
// over the number of such labels in the whole optimizer step.
struct LossInputs {
  Trace& trace;                  // of the model, after its forward()
  const Decoder::Config& model;  // for the head
  Value h_TD;                    // hidden states after the last norm, in the compute dtype
  Value w_VD;                    // weight of the head; no value where the head is from outside
  Value labels_T;                // i32, -100 = ignored
  Value scale;                   // f32 []

  Value logits() const;  // f32 [T, V]
};

// A kind of loss: its config, and how it is traced to an f32 scalar.
struct Loss {
  std::string name;                         // in `loss:NAME`
  bool (*holds)(const LossConfig& config);  // whether the config is of this kind
  // Traces the loss, f32 [].
  std::function<Value(const LossInputs& in, const LossConfig& config)> trace;
};
// Cross entropy, its chunked form and what modules add.
NamedTable<Loss>& losses();

// Adds a loss whose config is a C, and its word `loss:NAME`. `trace` is (const LossInputs&,
// const C&) -> f32 scalar. Throws Error where the name is taken.
template <class C, class F>
void add_loss(const std::string& name, F trace, std::string_view origin) {
  losses().add({name, [](const LossConfig& config) { return typeid(config) == typeid(C); },
                [trace](const LossInputs& in, const LossConfig& config) {
                  return trace(in, static_cast<const C&>(config));
                }},
               origin);
  loss_words().add(loss_word<C>(name), origin);
}

// The loss of the model on the batch. Throws Error where no loss of the table takes the config, or
// where what one traced is no f32 scalar.
Value traced_loss(Trace& trace, const Decoder::Config& model, const LossConfig& config);

}  // namespace rhea::nn
