// Adapters under PEFT's names: base_model.model.<module>.lora_A.weight.
#include "rhea/components/checkpoint/peft.h"

#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/base/output_folder.h"
#include "rhea/components/checkpoint/hf_rows.h"
#include "rhea/components/checkpoint/key_report.h"
#include "rhea/components/checkpoint/peft_config.h"
#include "rhea/components/checkpoint/step_folder.h"
#include "rhea/components/checkpoint/step_writer.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/components/safetensors/writer.h"

namespace rhea::checkpoint {
namespace {

using nlohmann::json;

constexpr std::string_view kWeight = ".weight", kPeftPrefix = "base_model.model.",
                           kPeftA = ".lora_A.weight", kPeftB = ".lora_B.weight";

std::string peft_name(const std::string& module, std::string_view factor) {
  return fmt::format("{}{}{}", kPeftPrefix, module, factor);
}

// Calls f(published row, row of `tensor`, bytes of a row): rows of B are rows of the weight.
template <class F>
void for_each_row(const HfPart& weight, const NamedTensor& tensor, const F& f) {
  const HfPart part{weight.name, tensor.shape, weight.rows};
  const HfRows rows(part, tensor.name, tensor.num_bytes(), dtype_size(tensor.dtype));
  rows.for_each(part, [&](int64_t hf, int64_t row) {
    f(hf * rows.row_bytes, row * rows.row_bytes, static_cast<size_t>(rows.row_bytes));
  });
}

// "model.layers.0.self_attn.q_proj" and where its rows lie.
HfPart published_module(const AdapterSet::Entry& entry, const KeyMap& key_map) {
  const int64_t in = entry.a.shape[1], out = entry.b.shape[0];
  const std::vector<int64_t> shape =
      entry.adapter.transposed ? std::vector<int64_t>{in, out} : std::vector<int64_t>{out, in};
  auto parts = key_map.to_hf(entry.adapter.module + std::string(kWeight), shape);
  if (parts.size() != 1 || !parts[0].name.ends_with(kWeight))
    throw Error("'{}' is no single published matrix, so PEFT has no name for its adapter",
                entry.adapter.module);
  parts[0].name.resize(parts[0].name.size() - kWeight.size());
  return parts[0];
}

// PEFT names modules by their ends: last segments, where every matrix with such an end has an
// adapter, else whole names.
std::vector<std::string> target_modules(const std::set<std::string>& adapted,
                                        std::span<const NamedTensor> tensors,
                                        const KeyMap& key_map) {
  const auto last = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
  std::set<std::string> ends;
  for (const std::string& name : adapted) ends.insert(last(name));
  for (const NamedTensor& tensor : tensors) {
    if (tensor.shape.size() != 2 || is_adapter(tensor.name) || is_optimizer_state(tensor.name))
      continue;
    for (const HfPart& part : key_map.to_hf(tensor.name, tensor.shape)) {
      if (!part.name.ends_with(kWeight)) continue;
      const std::string module = part.name.substr(0, part.name.size() - kWeight.size());
      if (!adapted.contains(module) && ends.contains(last(module)))
        return {adapted.begin(), adapted.end()};
    }
  }
  return {ends.begin(), ends.end()};
}

// A matrix of an adapter with the rows of its published form.
struct Factor {
  std::string name;
  NamedTensor tensor;
  HfPart rows_of;
};

std::vector<Factor> factors_of(const AdapterSet& adapters, const KeyMap& key_map) {
  std::vector<Factor> factors;
  for (const auto& entry : adapters.entries()) {
    HfPart part = published_module(entry, key_map);
    factors.push_back({peft_name(part.name, kPeftA), entry.a, {part.name, {}, {}}});
    factors.push_back({peft_name(part.name, kPeftB), entry.b, std::move(part)});
  }
  return factors;
}

json config_of(const AdapterSet& adapters, std::span<const NamedTensor> tensors,
               const KeyMap& key_map, const std::string& base_model) {
  const Adapter& first = adapters.entries().front().adapter;
  json rank_pattern = json::object(), alpha_pattern = json::object();
  std::set<std::string> modules;
  for (const auto& entry : adapters.entries()) {
    const std::string module = published_module(entry, key_map).name;
    modules.insert(module);
    if (entry.adapter.rank != first.rank) rank_pattern[module] = entry.adapter.rank;
    if (entry.adapter.alpha != first.alpha) alpha_pattern[module] = entry.adapter.alpha;
  }
  return {{"peft_type", "LORA"},
          {"task_type", "CAUSAL_LM"},
          {"base_model_name_or_path", base_model.empty() ? json() : json(base_model)},
          {"r", first.rank},
          {"lora_alpha", first.alpha},
          {"lora_dropout", 0.0},
          {"target_modules", target_modules(modules, tensors, key_map)},
          {"rank_pattern", rank_pattern},
          {"alpha_pattern", alpha_pattern},
          {"bias", "none"},
          {"fan_in_fan_out", first.transposed},
          {"init_lora_weights", true},
          {"use_rslora", false},
          {"use_dora", false},
          {"modules_to_save", nullptr},
          {"inference_mode", true}};
}

// What the folder's adapters compute must be what the run's do: their scale, and every field that
// says that they are of another kind. `expected` is the config that the run itself would write.
void check_config(const std::filesystem::path& folder, const Adapter& adapter,
                  const json& expected) {
  const auto file = folder / kAdapterConfigFile;
  const json config = read_adapter_config(folder);
  if (config["r"] != adapter.rank || config["lora_alpha"] != adapter.alpha)
    throw Error("{} has r {} and lora_alpha {}, the run's LoRAConverter has rank {} and alpha {}",
                file.string(), config["r"].dump(), config["lora_alpha"].dump(), adapter.rank,
                adapter.alpha);
  require_kind(file, config, expected);
}

// adapter_model.safetensors of the folder.
safetensors::File open_adapters(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / kAdapterFile))
    throw Error("{} has {}, but no {}{}", folder.string(), kAdapterConfigFile, kAdapterFile,
                std::filesystem::exists(folder / "adapter_model.bin")
                    ? "; its adapter_model.bin is a Python program's state, which is not read: "
                      "save it as safetensors"
                    : "");
  return safetensors::File(folder / kAdapterFile);
}

}  // namespace

bool is_peft_folder(const std::filesystem::path& path) {
  return std::filesystem::exists(path / kAdapterFile) ||
         std::filesystem::exists(path / kAdapterConfigFile);
}

void export_adapters(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                     const KeyMap& key_map, const std::string& base_model, DType dtype) {
  const AdapterSet adapters(key_map.adapters, tensors);
  RHEA_CHECK(!adapters.entries().empty(), "an export of adapters without any");
  std::vector<safetensors::TensorSpec> specs;
  std::vector<std::vector<std::byte>> values;
  uint64_t needed = 1 << 20;
  for (const Factor& factor : factors_of(adapters, key_map)) {
    const NamedTensor& tensor = factor.tensor;
    require_finite(tensor);
    std::vector<std::byte> own(tensor.bytes().begin(), tensor.bytes().end());
    for_each_row(factor.rows_of, tensor, [&](int64_t hf, int64_t row, size_t bytes) {
      std::memcpy(own.data() + hf, tensor.bytes().data() + row, bytes);
    });
    auto& converted =
        values.emplace_back(static_cast<size_t>(tensor.num_elements() * dtype_size(dtype)));
    safetensors::convert(safetensors::element_type_of(tensor.dtype), own, dtype, converted);
    specs.push_back({factor.name, safetensors::element_type_of(dtype), tensor.shape});
    needed += converted.size() + 512;
  }
  const json config = config_of(adapters, tensors, key_map, base_model);
  require_space(path.parent_path(), needed, kFolderRemedy);
  const auto fill = [&](const std::filesystem::path& temporary) {
    safetensors::Writer writer(temporary / kAdapterFile, specs, {{"format", "pt"}});
    for (size_t i = 0; i < values.size(); ++i) writer.write(i, values[i]);
    writer.finish();
    write_file_atomic(temporary / kAdapterConfigFile, config.dump(2) + "\n");
  };
  make_folder(path, fill, Existing::replace);
  if (base_model.empty())
    log::warning("checkpoint",
                 "{} names no base model: the weights below the adapters come from no published "
                 "folder. If a folder holds that model, write the adapters of the checkpoint again "
                 "with its name, `rhea convert --from STEP --only_adapters --hf_assets_path BASE "
                 "--to DIR`; `rhea convert --from STEP --to DIR` without --only_adapters gives the "
                 "whole model",
                 (path / kAdapterConfigFile).string());
}

int64_t import_adapters(const std::filesystem::path& folder, std::span<const NamedTensor> tensors,
                        const KeyMap& key_map) {
  if (key_map.adapters.empty())
    throw Error("{} holds LoRA adapters, but the run has none; give its model a LoRAConverter",
                folder.string());
  const AdapterSet adapters(key_map.adapters, tensors);
  check_config(folder, adapters.entries().front().adapter,
               config_of(adapters, tensors, key_map, ""));
  const safetensors::File file = open_adapters(folder);
  KeyReport report;
  std::set<std::string> used;
  const auto factors = factors_of(adapters, key_map);
  for (const Factor& factor : factors) {
    used.insert(factor.name);
    const auto* view = file.find(factor.name);
    if (view == nullptr)
      report.missing.push_back(factor.name);
    else if (view->shape != factor.tensor.shape ||
             !safetensors::convertible(view->dtype, factor.tensor.dtype))
      report.unequal.push_back(
          fmt::format("{}: {} [{}] in the file, {} [{}] in the run", factor.name,
                      safetensors::element_type_name(view->dtype), fmt::join(view->shape, ", "),
                      dtype_name(factor.tensor.dtype), fmt::join(factor.tensor.shape, ", ")));
  }
  for (const auto& view : file.tensors())
    if (!used.contains(view.name)) report.unexpected.push_back(view.name);
  report.raise(
      (folder / kAdapterFile).string(),
      "The run's LoRAConverter has to name the modules that the adapters were trained at.");
  for (const Factor& factor : factors) {
    const NamedTensor& tensor = factor.tensor;
    const auto& view = file.at(factor.name);
    std::vector<std::byte> published(static_cast<size_t>(tensor.num_bytes()));
    safetensors::convert(view.dtype, view.bytes, tensor.dtype, published);
    for_each_row(factor.rows_of, tensor, [&](int64_t hf, int64_t row, size_t bytes) {
      std::memcpy(tensor.writable_bytes().data() + row, published.data() + hf, bytes);
    });
  }
  return static_cast<int64_t>(factors.size());
}

PublishedAdapters read_published_adapters(const std::filesystem::path& folder) {
  const json config = read_adapter_config(folder);
  const auto own = [&](const char* name) { return config.value(name, json()); };
  const auto config_file = folder / kAdapterConfigFile;
  require_kind(config_file, config,
               {{"peft_type", "LORA"},
                {"bias", "none"},
                {"fan_in_fan_out", own("fan_in_fan_out")},
                {"use_rslora", own("use_rslora")},
                {"rank_pattern", own("rank_pattern")},
                {"alpha_pattern", own("alpha_pattern")},
                // The file has the matrices of these layers, and no others.
                {"layers_to_transform", own("layers_to_transform")}});
  const safetensors::File file = open_adapters(folder);
  std::vector<std::vector<float>> memory;
  std::vector<NamedTensor> tensors;
  std::set<std::string> modules;
  for (const auto& view : file.tensors()) {
    std::string_view module = view.name;
    const bool is_a = module.ends_with(kPeftA);
    if (!module.starts_with(kPeftPrefix) || !(is_a || module.ends_with(kPeftB)))
      throw Error("{} holds '{}', which is no matrix of an adapter at a linear layer",
                  file.path().string(), view.name);
    module.remove_prefix(kPeftPrefix.size());
    module.remove_suffix(kPeftA.size());
    modules.emplace(module);
    auto& values = memory.emplace_back(safetensors::read_vector<float>(view));
    tensors.push_back(
        {adapter_name(module, is_a), DType::f32, view.shape, static_cast<void*>(values.data())});
  }
  if (modules.empty()) throw Error("{} holds no adapters", file.path().string());
  std::vector<Adapter> adapters;
  for (const std::string& module : modules) {
    const auto number = [&](const char* name, const char* pattern) {
      return pattern_value(config_file, config, pattern, module, config[name].get<double>());
    };
    const double rank = number("r", "rank_pattern"), alpha = number("lora_alpha", "alpha_pattern");
    adapters.push_back({.module = module,
                        .rank = static_cast<int64_t>(rank),
                        // use_rslora: the adapter counts alpha / sqrt(rank).
                        .alpha = own("use_rslora") == json(true) ? alpha * std::sqrt(rank) : alpha,
                        .transposed = own("fan_in_fan_out") == json(true)});
  }
  AdapterSet set(adapters, tensors);
  const json base = own("base_model_name_or_path");
  return {std::move(memory), std::move(set), base.is_string() ? base.get<std::string>() : ""};
}

}  // namespace rhea::checkpoint
