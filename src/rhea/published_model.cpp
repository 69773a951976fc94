// Loading goes through the same import as initial_load_in_hf, so the same rules hold.
#include "rhea/published_model.h"

#include <cstring>
#include <map>

#include "rhea/base/error.h"
#include "rhea/components/checkpoint/hf_rows.h"
#include "rhea/components/checkpoint/hf_weights.h"
#include "rhea/components/checkpoint/step_reader.h"
#include "rhea/models/decoder_sizes.h"
#include "rhea/models/key_rules.h"
#include "rhea/models/registry.h"
#include "rhea/parameter_tensors.h"

namespace rhea {
namespace {

using checkpoint::NamedTensor;

// One tensor of a checkpoint into `target`, whose rows may lie in another order.
void read_tensor(const checkpoint::StepReader& reader, const std::string& native, bool permuted,
                 int64_t head_dim, const NamedTensor& target) {
  if (!permuted) return reader.read({native, target.dtype, target.shape, target.data});
  std::vector<std::byte> bytes(static_cast<size_t>(target.num_bytes()));
  reader.read({native, target.dtype, target.shape, bytes.data()});
  const checkpoint::HfPart part{target.name, target.shape,
                                checkpoint::half_split_rows(target.shape[0], head_dim)};
  const checkpoint::HfRows rows(part, native, target.num_bytes(), dtype_size(target.dtype));
  rows.for_each(part, [&](int64_t hf, int64_t row) {
    std::memcpy(target.writable_bytes().data() + hf * rows.row_bytes,
                bytes.data() + row * rows.row_bytes, static_cast<size_t>(rows.row_bytes));
  });
}

// The weights of a checkpoint, under native names, into `targets`, under Hugging Face's. Strict, as
// every load.
void import_native(const ModelFolder& files, const nn::Decoder::Config& decoder,
                   std::span<const NamedTensor> targets) {
  const checkpoint::StepReader reader(files.path);
  const auto rules = models::find_family(files.family).key_rules;
  const int64_t head_dim = models::permuted_head_dim(decoder);
  std::map<std::string, const NamedTensor*> missing;
  for (const NamedTensor& target : targets) missing[target.name] = &target;
  for (const auto& [native, stored] : reader.manifest().tensors) {
    if (checkpoint::is_optimizer_state(native)) continue;
    const auto key = rules.empty() ? models::PublishedKey{native}
                                   : models::to_hf(rules, native).value_or(models::PublishedKey{});
    const auto target = missing.find(key.name);
    if (target == missing.end())
      throw Error("{} holds '{}', which the model of {} does not have", files.path.string(), native,
                  files.config_name);
    read_tensor(reader, native, key.permuted, head_dim, *target->second);
    missing.erase(target);
  }
  if (!missing.empty())
    throw Error("{} holds nothing for '{}'", files.path.string(), missing.begin()->first);
}

}  // namespace

PublishedModel::PublishedModel(const std::filesystem::path& folder, ThreadPool* pool)
    : files_(find_model(folder)),
      published_(models::hf::parse_config(files_.config_json, files_.config_name)),
      decoder_(published_.decoder),
      memory_(decoder_) {
  models::hf::log_notes(published_, files_.config_name);
  if (files_.is_native)
    import_native(files_, decoder_, memory_.tensors());
  else
    checkpoint::import_hf(folder, published_key_map(decoder_), memory_.tensors(), {.pool = pool});
}

float* PublishedModel::data(const std::string& fqn) const {
  for (size_t i = 0; i < parameters().size(); ++i) {
    if (parameters()[i].fqn == fqn) return data(i);
  }
  throw Error("the model has no parameter {}", fqn);
}

}  // namespace rhea
