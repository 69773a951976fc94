// Adapters under PEFT's names: base_model.model.<module>.lora_A.weight.
#include "rhea/components/checkpoint/peft.h"

#include <fmt/ranges.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/base/output_folder.h"
#include "rhea/components/checkpoint/adapters.h"
#include "rhea/components/checkpoint/hf_rows.h"
#include "rhea/components/checkpoint/key_report.h"
#include "rhea/components/checkpoint/step_folder.h"
#include "rhea/components/checkpoint/step_writer.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/components/safetensors/writer.h"

namespace rhea::checkpoint {
namespace {

using nlohmann::json;

constexpr std::string_view kWeight = ".weight";

std::string peft_name(const std::string& module, const char* factor) {
  return fmt::format("base_model.model.{}.{}.weight", module, factor);
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
    factors.push_back({peft_name(part.name, "lora_A"), entry.a, {part.name, {}, {}}});
    factors.push_back({peft_name(part.name, "lora_B"), entry.b, std::move(part)});
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
          {"base_model_name_or_path", base_model},
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
  if (!std::filesystem::exists(file))
    throw Error("{} has no {}, so the scale of its adapters is unknown", folder.string(),
                kAdapterConfigFile);
  const json config = parse_json_or_discard(read_file(file));
  if (config.is_discarded()) throw Error("{}: not valid JSON", file.string());
  if (!config.is_object()) throw Error("{}: expected a JSON object", file.string());
  const auto number = [&](const char* name) {
    const auto at = config.find(name);
    if (at == config.end() || !at->is_number())
      throw Error("{}: {} is absent or no number", file.string(), name);
    return at->get<double>();
  };
  const double rank = number("r"), alpha = number("lora_alpha");
  if (rank != static_cast<double>(adapter.rank) || alpha != adapter.alpha)
    throw Error("{} has r {} and lora_alpha {}, the run's LoRAConverter has rank {} and alpha {}",
                file.string(), rank, alpha, adapter.rank, adapter.alpha);
  const auto is_nothing = [](const json& value) {
    return value.is_null() || (value.is_structured() && value.empty()) || value == json(false);
  };
  for (const char* name :
       {"peft_type", "bias", "fan_in_fan_out", "use_rslora", "use_dora", "rank_pattern",
        "alpha_pattern", "modules_to_save", "layers_to_transform"}) {
    const json found = config.value(name, json()), own = expected.value(name, json());
    // An absent field has PEFT's default, which is what the run writes where it is a word.
    if (found == own || (is_nothing(found) && is_nothing(own))) continue;
    if (!config.contains(name) && own.is_string()) continue;
    throw Error("{}: {} is {}, the adapters of the run need {}", file.string(), name, found.dump(),
                own.dump());
  }
}

}  // namespace

bool is_peft_folder(const std::filesystem::path& path) {
  return std::filesystem::exists(path / kAdapterFile);
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
}

int64_t import_adapters(const std::filesystem::path& folder, std::span<const NamedTensor> tensors,
                        const KeyMap& key_map) {
  if (key_map.adapters.empty())
    throw Error("{} holds LoRA adapters, but the run has none; give its model a LoRAConverter",
                folder.string());
  const AdapterSet adapters(key_map.adapters, tensors);
  check_config(folder, adapters.entries().front().adapter,
               config_of(adapters, tensors, key_map, ""));
  const safetensors::File file(folder / kAdapterFile);
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

}  // namespace rhea::checkpoint
