#include "rhea/convert_adapters.h"

#include <vector>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/components/checkpoint/adapters.h"
#include "rhea/components/checkpoint/peft.h"
#include "rhea/components/checkpoint/step_reader.h"
#include "rhea/convert_source.h"

namespace rhea {

void write_adapters(const ConvertOptions& options, const std::filesystem::path& to) {
  const ModelFolder files = find_model(options.from);
  if (!files.is_native)
    throw Error("{} is no checkpoint of rhea train, so it has no adapters", options.from.string());
  const checkpoint::StepReader reader(files.path);
  const checkpoint::StoredAdapters adapters(reader);
  checkpoint::KeyMap key_map = published_names(files);
  for (const auto& entry : adapters.set().entries()) key_map.adapters.push_back(entry.adapter);
  if (key_map.adapters.empty())
    throw Error("{} has no adapters; without --only_adapters it is converted whole",
                options.from.string());
  std::vector<checkpoint::NamedTensor> all(adapters.tensors().begin(), adapters.tensors().end());
  const DType dtype = options.export_dtype.value_or(all.front().dtype);
  // Of the weights it takes no more than names and shapes.
  for (const auto& [name, stored] : reader.manifest().tensors)
    if (!checkpoint::is_adapter(name)) all.push_back({name, stored.dtype, stored.shape, nullptr});
  std::filesystem::path base = files.base;
  if (!options.hf_assets_path.empty())
    base = std::filesystem::absolute(options.hf_assets_path).lexically_normal();
  checkpoint::export_adapters(to, all, key_map, base.string(), dtype);
  log::info("convert", "Wrote {} adapters to {}.", key_map.adapters.size(), to.string());
}

}  // namespace rhea
