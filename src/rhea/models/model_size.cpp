// Parameter count and FLOPs of the log lines.
#include "rhea/models/model_size.h"

namespace rhea::models {

ModelSize model_size(const nn::Decoder::Config& model, const std::vector<nn::Parameter>& parameters,
                     int64_t seq_len) {
  ModelSize size;
  for (const auto& parameter : parameters) {
    const int64_t count = ir::num_elements(parameter.shape);
    size.num_parameters += count;
    size.num_active += count / parameter.share.of * parameter.share.used;
  }
  const int64_t embedding =
      model.tok_embeddings->num_embeddings * model.tok_embeddings->embedding_dim;
  const int64_t in_products = size.num_active - (model.tie_word_embeddings ? 0 : embedding);
  int64_t attention = 0;
  for (const auto& layer : model.layers)
    attention += layer->attention->score_width() + layer->feed_forward->score_width();
  size.flops_per_token = 6 * in_products + 6 * attention * seq_len;
  return size;
}

}  // namespace rhea::models
