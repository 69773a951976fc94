// Loading goes through the same import as initial_load_in_hf, so the same rules hold.
#include "rhea/published_model.h"

#include "rhea/base/error.h"
#include "rhea/components/checkpoint/hf_weights.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/parameter_tensors.h"

namespace rhea {

PublishedModel::PublishedModel(const std::filesystem::path& folder)
    : published_(models::hf::read_config(folder / "config.json")),
      decoder_(models::hf::build(published_)) {
  ir::Graph graph;
  nn::Trace trace(graph, {.num_tokens = 1, .seq_len = 1});
  nn::logits(trace, decoder_);
  parameters_ = trace.parameters();
  int64_t total = 0;
  for (const auto& parameter : parameters_)
    total += round_up(ir::num_elements(parameter.shape) * 4, 64);
  block_ = exec::cpu::allocate_state(total);
  char* at = static_cast<char*>(block_.get());
  std::vector<checkpoint::NamedTensor> targets;
  for (const auto& parameter : parameters_) {
    data_.push_back(reinterpret_cast<float*>(at));
    add_parts(targets, parameter, DType::f32, at);
    at += round_up(ir::num_elements(parameter.shape) * 4, 64);
  }
  checkpoint::import_hf(folder, published_key_map(decoder_), targets);
}

float* PublishedModel::data(const std::string& fqn) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].fqn == fqn) return data_[i];
  }
  throw Error("the model has no parameter {}", fqn);
}

}  // namespace rhea
