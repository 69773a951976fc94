// Parameter count and FLOPs of the log lines.
#include "rhea/models/model_size.h"

namespace rhea::models {

ModelSize model_size(const nn::Decoder::Config& model, const std::vector<nn::Parameter>& parameters,
                     int64_t seq_len) {
  ModelSize size;
  const std::string table = model.embedding_fqn();
  int64_t in_products = 0, frozen_in_products = 0;
  for (const auto& parameter : parameters) {
    const int64_t count = ir::num_elements(parameter.shape);
    const int64_t active = count / parameter.share.of * parameter.share.used;
    size.num_parameters += count;
    size.num_active += active;
    if (parameter.share.of > 1) size.num_sparse += count;
    const bool trained = nn::is_trainable(model.trainable, parameter);
    if (trained) size.num_trainable += count;
    // The untied table is looked up, not multiplied with.
    if (parameter.fqn == table && !model.tie_word_embeddings) continue;
    in_products += active;
    if (!trained) frozen_in_products += active;
  }
  int64_t attention = 0;
  for (const auto& layer : model.layers)
    attention += layer->attention->score_width() + layer->feed_forward->score_width();
  size.flops_per_token = 6 * in_products - 2 * frozen_in_products + 6 * attention * seq_len;
  return size;
}

}  // namespace rhea::models
