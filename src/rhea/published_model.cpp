// Loading goes through the same import as initial_load_in_hf, so the same rules hold.
#include "rhea/published_model.h"

#include "rhea/base/error.h"
#include "rhea/components/checkpoint/hf_weights.h"
#include "rhea/exec/cpu/backend.h"

namespace rhea {

void add_parts(std::vector<checkpoint::NamedTensor>& out, const nn::Parameter& parameter,
               DType dtype, void* data, const std::string& prefix, const std::string& suffix) {
  const int64_t rows = parameter.shape.empty() ? 1 : parameter.shape[0];
  const int64_t row_bytes = ir::num_elements(parameter.shape) / rows * dtype_size(dtype);
  for (const auto& part : parameter.parts) {
    checkpoint::NamedTensor made{prefix + part.fqn + suffix, dtype, parameter.shape,
                                 static_cast<char*>(data) + part.row_begin * row_bytes};
    if (!made.shape.empty()) made.shape[0] = part.row_end - part.row_begin;
    out.push_back(std::move(made));
  }
}

PublishedModel::PublishedModel(const std::filesystem::path& folder, ThreadPool& pool)
    : published_(models::hf::read_config(folder / "config.json")),
      decoder_(models::hf::build(published_)) {
  ir::Graph graph;
  nn::Trace trace(graph, {.num_tokens = 1, .seq_len = 1});
  nn::logits(trace, decoder_);
  parameters_ = trace.parameters();
  int64_t total = 0;
  for (const auto& parameter : parameters_)
    total += round_up(ir::num_elements(parameter.shape) * 4, 64);
  block_ = exec::cpu::allocate_state(total, pool);
  char* at = static_cast<char*>(block_.get());
  std::vector<checkpoint::NamedTensor> targets;
  for (const auto& parameter : parameters_) {
    data_.push_back(reinterpret_cast<float*>(at));
    add_parts(targets, parameter, DType::f32, at);
    at += round_up(ir::num_elements(parameter.shape) * 4, 64);
  }
  auto keys = checkpoint::identity_key_map();
  if (decoder_.tie_word_embeddings) keys.tied = {{"lm_head.weight", "model.embed_tokens.weight"}};
  keys.ignorable = [](const std::string& key) { return key.ends_with("rotary_emb.inv_freq"); };
  checkpoint::import_hf(folder, keys, targets);
}

float* PublishedModel::data(const std::string& fqn) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].fqn == fqn) return data_[i];
  }
  throw Error("the model has no parameter {}", fqn);
}

}  // namespace rhea
