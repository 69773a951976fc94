// Defaults of sections that are computed, and the words of the loss.
#include "rhea/config/trainer_config.h"

namespace rhea {

AdamW::Config::Config(double lr) {
  ParamGroup group;
  group.optimizer_kwargs.lr = lr;
  group.optimizer_kwargs.betas = {0.9, 0.95};
  group.optimizer_kwargs.eps = 1e-8;
  group.optimizer_kwargs.weight_decay = 0.1;
  param_groups = {group};
}

NamedTable<LossWord>& loss_words() {
  static NamedTable<LossWord> table = [] {
    NamedTable<LossWord> made("loss");
    made.add(loss_word<CrossEntropyLossConfig>("CrossEntropyLoss"), kInTree);
    made.add(loss_word<ChunkedLossConfig>("ChunkedLossWrapper"), kInTree);
    return made;
  }();
  return table;
}

}  // namespace rhea
