#include "rhea/published_tensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "rhea/base/error.h"
#include "rhea/components/checkpoint/hf_weights.h"
#include "rhea/components/checkpoint/key_report.h"
#include "rhea/components/checkpoint/stored_weights.h"
#include "rhea/nn/trace.h"
#include "rhea/parameter_tensors.h"

namespace rhea {
namespace {

using Shape = std::vector<int64_t>;

// A tensor that holds one matrix of all experts of a layer, and what it stands for.
struct JoinedExperts {
  Shape shape;  // experts, rows of its parts one after the other, columns
  std::vector<std::string> experts;
};

std::map<std::string, JoinedExperts> join(const std::vector<checkpoint::NamedTensor>& targets) {
  std::map<std::string, JoinedExperts> all;
  for (const auto& target : targets) {
    const auto expert = checkpoint::parse_expert(target.name);
    if (!expert || target.shape.size() != 2) continue;
    JoinedExperts& joined = all[expert->joined];
    if (joined.experts.empty())
      joined.shape = {0, expert->num_parts * target.shape[0], target.shape[1]};
    joined.shape[0] = std::max(joined.shape[0], expert->expert + 1);
    joined.experts.push_back(target.name);
  }
  return all;
}

template <class T>
auto find_either(const std::map<std::string, T>& map, const std::string& name,
                 const std::string& other) {
  const auto found = map.find(name);
  return found == map.end() ? map.find(other) : found;
}

}  // namespace

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
  const auto joined_experts = join(targets_);
  checkpoint::KeyReport report;
  std::set<std::string> missing;
  for (const auto& [name, target] : targets) missing.insert(name);
  const auto check_shape = [&](const safetensors::TensorSpec& spec, const Shape& wanted) {
    if (spec.shape != wanted)
      report.unequal.push_back(fmt::format("{}: [{}] in the input, [{}] in the model", spec.name,
                                           fmt::join(spec.shape, ", "), fmt::join(wanted, ", ")));
  };
  for (const auto& tensor : tensors) {
    const auto& spec = tensor.spec;
    const std::string other = checkpoint::other_spelling(spec.name);
    if (const auto target = find_either(targets, spec.name, other); target != targets.end()) {
      check_shape(spec, target->second->shape);
      missing.erase(target->first);
      continue;
    }
    // Experts one by one stand for a joined tensor and the other way round, as loading has it.
    if (const auto joined = find_either(joined_experts, spec.name, other);
        joined != joined_experts.end()) {
      check_shape(spec, joined->second.shape);
      for (const std::string& expert : joined->second.experts) missing.erase(expert);
      continue;
    }
    if (const auto expert = checkpoint::parse_expert(spec.name)) {
      const auto joined =
          find_either(targets, expert->joined, checkpoint::other_spelling(expert->joined));
      if (joined != targets.end()) {
        missing.erase(joined->first);
        continue;
      }
    }
    if (!key_map_.ignorable || !key_map_.ignorable(spec.name))
      report.unexpected.push_back(spec.name);
  }
  report.missing.assign(missing.begin(), missing.end());
  report.raise(where);
}

}  // namespace rhea
