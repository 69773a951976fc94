// Section `loss`: a slot that holds one of these.
#pragma once
#include <string>

#include "rhea/base/named_table.h"
#include "rhea/config/visitor.h"

namespace rhea {

// Base of the configs of losses.
struct LossConfig : Config {};

// A word of `loss:WORD`, and what it puts into the slot. How a loss is traced: nn/losses.h.
struct LossWord {
  std::string name;           // WORD
  void (*select)(SlotBase&);  // puts the default config of its kind into the slot
};
// All words: the in-tree losses and those that modules add.
NamedTable<LossWord>& loss_words();

// The word that puts a D of defaults into the slot.
template <std::derived_from<LossConfig> D>
LossWord loss_word(std::string name) {
  return {std::move(name), [](SlotBase& slot) { slot.replace(Slot<LossConfig>(D{})); }};
}

// The attribute of the slot: all words there are.
struct any_loss {
  // Makes the words the choices of the field.
  void apply(FieldInfo& info) const {
    loss_words().for_each([&](const LossWord& word) {
      info.alternatives.push_back({word.name, word.select});
    });
  }
};

// float32, sum over labels other than -100, divided by the valid labels of the whole global batch.
struct CrossEntropyLossConfig : LossConfig {
  std::optional<int64_t> global_vocab_size;

  void fields(Visitor& v) override {
    v("global_vocab_size", global_vocab_size,
      "size of the vocabulary, checked against the model's; None = the model's", at_least(1));
  }
};

// Head, loss and its backward one chunk of tokens at a time, so that no [tokens, vocabulary] buffer
// exists.
struct ChunkedLossConfig : LossConfig {
  int64_t num_chunks = 8;
  Slot<LossConfig> loss_fn = CrossEntropyLossConfig{};

  void fields(Visitor& v) override {
    v("num_chunks", num_chunks,
      "the head holds the logits of 4/num_chunks of the tokens at a time, of 512 tokens at most",
      at_least(1));
    v("loss_fn", loss_fn, "loss of one chunk");
  }
};

}  // namespace rhea
