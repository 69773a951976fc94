#include "rhea/published_tensors.h"

#include <fmt/ranges.h>

#include <map>
#include <set>

#include "rhea/base/error.h"
#include "rhea/components/checkpoint/hf_weights.h"
#include "rhea/components/checkpoint/key_report.h"
#include "rhea/components/checkpoint/stored_weights.h"
#include "rhea/nn/trace.h"
#include "rhea/parameter_tensors.h"

namespace rhea {

PublishedTensors::PublishedTensors(const nn::Decoder::Config& decoder)
    : key_map_(published_key_map(decoder)) {
  ir::Graph graph;
  nn::Trace trace(graph, {.num_tokens = 1, .seq_len = 1});
  nn::logits(trace, decoder);
  for (const auto& parameter : trace.parameters()) {
    add_parts(targets_, parameter, DType::f32, nullptr);
    num_parameters_ += ir::num_elements(parameter.shape);
  }
  for (const auto& constant : trace.constants()) add_parts(targets_, constant, DType::f32, nullptr);
}

void PublishedTensors::compare(const std::filesystem::path& folder) const {
  checkpoint::compare_hf(folder, key_map_, targets_);
}

void PublishedTensors::compare(const std::vector<safetensors::TensorSource>& tensors,
                               const std::string& where) const {
  std::map<std::string, const checkpoint::NamedTensor*> targets;
  for (const auto& target : targets_) targets[target.name] = &target;
  checkpoint::KeyReport report;
  std::set<std::string> missing;
  for (const auto& [name, target] : targets) missing.insert(name);
  // Experts one by one stand for a joined tensor and the other way round, as loading has it.
  const auto stands_for_others = [&](const std::string& name) {
    const auto expert = checkpoint::parse_expert(name);
    bool found = false;
    for (const std::string& spelled : {name, checkpoint::other_spelling(name)}) {
      if (spelled.empty()) continue;
      if (expert) {
        for (const std::string& joined :
             {expert->joined, checkpoint::other_spelling(expert->joined)})
          if (targets.contains(joined)) found = true, missing.erase(joined);
        continue;
      }
      for (const auto& [other, target] : targets)
        if (const auto one = checkpoint::parse_expert(other); one && one->joined == spelled)
          found = true, missing.erase(other);
    }
    return found;
  };
  for (const auto& tensor : tensors) {
    const auto& spec = tensor.spec;
    auto target = targets.find(spec.name);
    if (target == targets.end()) target = targets.find(checkpoint::other_spelling(spec.name));
    if (target == targets.end()) {
      const bool ignorable = key_map_.ignorable && key_map_.ignorable(spec.name);
      if (!ignorable && !stands_for_others(spec.name)) report.unexpected.push_back(spec.name);
      continue;
    }
    if (spec.shape != target->second->shape)
      report.unequal.push_back(fmt::format("{}: [{}] in the input, [{}] in the model", spec.name,
                                           fmt::join(spec.shape, ", "),
                                           fmt::join(target->second->shape, ", ")));
    missing.erase(target->first);
  }
  report.missing.assign(missing.begin(), missing.end());
  report.raise(where);
}

}  // namespace rhea
