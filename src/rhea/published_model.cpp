// Loading goes through the same import as initial_load_in_hf, so the same rules hold.
#include "rhea/published_model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "rhea/base/error.h"
#include "rhea/base/machine_memory.h"
#include "rhea/base/thread_pool.h"
#include "rhea/components/checkpoint/adapters.h"
#include "rhea/components/checkpoint/hf_rows.h"
#include "rhea/components/checkpoint/hf_weights.h"
#include "rhea/components/checkpoint/key_report.h"
#include "rhea/components/checkpoint/step_reader.h"
#include "rhea/components/safetensors/element_type.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/models/decoder_sizes.h"
#include "rhea/models/key_rules.h"
#include "rhea/models/registry.h"
#include "rhea/nn/moe.h"
#include "rhea/parameter_tensors.h"

namespace rhea {
namespace {

using checkpoint::NamedTensor;

using checkpoint::HfPart;

// One tensor of a checkpoint, with the adapter that it has there merged in, into `targets`, one for
// each of the parts that it is published as.
void read_tensor(const checkpoint::StepReader& reader, const std::string& native,
                 const std::vector<int64_t>& shape, const checkpoint::AdapterSet& adapters,
                 const std::vector<HfPart>& parts, const std::vector<const NamedTensor*>& targets) {
  const DType dtype = targets.front()->dtype;
  const auto read = [&](const NamedTensor& tensor) {
    const auto adapter = adapters.of_weight(native);
    if (!adapter || dtype == DType::f32) {
      reader.read(tensor);
      if (adapter) checkpoint::merge_adapter(*adapter, tensor);
      return;
    }
    // The sum is made in f32 and rounded once.
    NamedTensor sum{native, DType::f32, shape};
    std::vector<std::byte> bytes(static_cast<size_t>(sum.num_bytes()));
    sum.data = bytes.data();
    reader.read(sum);
    checkpoint::merge_adapter(*adapter, sum);
    safetensors::convert(safetensors::ElementType::F32, bytes, dtype, tensor.writable_bytes());
  };
  if (parts.size() == 1 && parts[0].rows.empty())
    return read({native, dtype, shape, targets[0]->data});
  NamedTensor whole{native, dtype, shape};
  std::vector<std::byte> bytes(static_cast<size_t>(whole.num_bytes()));
  whole.data = bytes.data();
  read(whole);
  for (size_t i = 0; i < parts.size(); ++i) {
    const checkpoint::HfRows rows(parts[i], native, whole.num_bytes(), dtype_size(dtype));
    rows.for_each(parts[i], [&](int64_t hf, int64_t row) {
      std::memcpy(targets[i]->writable_bytes().data() + hf * rows.row_bytes,
                  bytes.data() + row * rows.row_bytes, static_cast<size_t>(rows.row_bytes));
    });
  }
}

// The published decoder; its routers have a correction bias where the checkpoint holds one that
// published files have no key for, so that tokens go where they went in training.
nn::Decoder::Config decoder_of(const ModelFolder& files, const nn::Decoder::Config& published) {
  nn::Decoder::Config decoder = published;
  if (!files.is_native) return decoder;
  const checkpoint::StepReader reader(files.path);
  const auto rules = models::find_family(files.family).key_rules;
  const auto& stored = reader.manifest().tensors;
  const bool balanced = std::any_of(stored.begin(), stored.end(), [&](const auto& tensor) {
    const auto key = models::to_hf(rules, tensor.first);
    return key && key->form == models::KeyForm::absent;
  });
  for (auto& layer : decoder.layers) {
    auto* mixture = layer->feed_forward.template as<nn::MoE::Config>();
    if (balanced && mixture != nullptr) mixture->router->correction_bias = true;
  }
  return decoder;
}

// One tensor of a checkpoint, and where its parts go.
struct NativeTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<HfPart> parts;
  std::vector<const NamedTensor*> targets;
};

// The weights of a checkpoint, under native names, into `targets`, under Hugging Face's. Strict, as
// every load: all differences are listed before anything is read.
void import_native(const ModelFolder& files, const nn::Decoder::Config& decoder,
                   std::span<const NamedTensor> targets, ThreadPool* pool) {
  const checkpoint::StepReader reader(files.path);
  const auto rules = models::find_family(files.family).key_rules;
  const int64_t head_dim = models::permuted_head_dim(decoder);
  checkpoint::KeyReport report;
  std::map<std::string, const NamedTensor*> missing;
  for (const NamedTensor& target : targets) missing[target.name] = &target;
  std::vector<NativeTensor> tensors;
  for (const auto& [native, stored] : reader.manifest().tensors) {
    if (checkpoint::is_optimizer_state(native) || checkpoint::is_adapter(native)) continue;
    NativeTensor tensor{native, stored.shape, {{native, stored.shape}}, {}};
    if (models::to_hf(rules, native))
      tensor.parts = published_parts(rules, native, stored.shape, head_dim);
    for (const HfPart& part : tensor.parts) {
      const auto target = missing.find(part.name);
      if (target == missing.end()) {
        if (report.unexpected.empty() || report.unexpected.back() != native)
          report.unexpected.push_back(native);
        continue;
      }
      if (part.shape != target->second->shape)
        report.unequal.push_back(fmt::format("{}: [{}] in the checkpoint, [{}] in the model",
                                             part.name, fmt::join(part.shape, ", "),
                                             fmt::join(target->second->shape, ", ")));
      tensor.targets.push_back(target->second);
      missing.erase(target);
    }
    tensors.push_back(std::move(tensor));
  }
  for (const auto& [name, target] : missing) report.missing.push_back(name);
  report.raise(fmt::format("{} (model of {})", files.path.string(), files.config_name));

  const checkpoint::StoredAdapters adapters(reader);
  const auto read = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const NativeTensor& tensor = tensors[static_cast<size_t>(i)];
      read_tensor(reader, tensor.name, tensor.shape, adapters.set(), tensor.parts, tensor.targets);
    }
  };
  const auto count = static_cast<int64_t>(tensors.size());
  if (pool == nullptr)
    read(0, count);
  else
    pool->parallel_for(count, [&](int64_t begin, int64_t end, int) { read(begin, end); });
}

}  // namespace

PublishedModel::PublishedModel(const std::filesystem::path& folder, ThreadPool* pool, DType dtype)
    : files_(find_model(folder)),
      published_(models::hf::parse_config(files_.config_json, files_.config_name)),
      decoder_(decoder_of(files_, published_.decoder)),
      memory_(decoder_, dtype) {
  models::hf::log_notes(published_, files_.config_name);
  if (files_.is_native)
    import_native(files_, decoder_, memory_.tensors(), pool);
  else
    checkpoint::import_hf(folder, published_key_map(decoder_), memory_.tensors(), {.pool = pool});
}

void PublishedModel::require_memory_of(const ir::Graph& graph, const ThreadPool& pool,
                                       const std::string& what, const std::string& remedy) const {
  const auto bytes_of = [&](ir::ValueId value) {
    const ir::Type& type = graph.type(value);
    double bytes = static_cast<double>(dtype_size(type.dtype));
    for (const int64_t dim : type.shape) bytes *= static_cast<double>(dim);
    return bytes;
  };
  const auto is_weight = [&](const std::string& name) {
    return std::ranges::any_of(parameters(), [&](const auto& one) { return one.fqn == name; });
  };
  double bytes = 0;
  for (const auto& input : graph.inputs())
    if (!is_weight(input.name)) bytes += bytes_of(input.value);
  for (const auto& output : graph.outputs()) bytes += bytes_of(output.value);
  const auto memory = exec::cpu::plan(graph, pool.num_threads()).memory;
  for (const int64_t part : {memory.arena, memory.scratch, memory.constants})
    bytes += static_cast<double>(part);
  require_memory(bytes, what, remedy);
}

}  // namespace rhea
