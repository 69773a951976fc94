// Every input becomes a list of published tensors that are made when they are written.
#include "rhea/convert_source.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/components/checkpoint/adapters.h"
#include "rhea/components/checkpoint/hf_folder.h"
#include "rhea/components/checkpoint/hf_rows.h"
#include "rhea/components/checkpoint/peft.h"
#include "rhea/components/checkpoint/quantized.h"
#include "rhea/components/checkpoint/step_reader.h"
#include "rhea/components/checkpoint/stored_weights.h"
#include "rhea/components/gguf/published.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/models/flavor.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/models/registry.h"
#include "rhea/parameter_tensors.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;
using safetensors::Sink;
using safetensors::TensorSource;

// A tensor that is made whole.
TensorSource whole(const safetensors::TensorSpec& spec,
                   std::function<void(std::span<std::byte> out)> fill) {
  return {
      spec, [spec, fill = std::move(fill)](const Sink& sink) {
        std::vector<std::byte> bytes(safetensors::tensor_bytes(spec.dtype, spec.shape, spec.name));
        fill(bytes);
        sink(bytes);
      }};
}

// --- a Hugging Face folder

ConvertSource from_hf(const ConvertOptions& options, const fs::path& folder) {
  const auto weights = std::make_shared<const safetensors::Weights>(folder);
  const auto quantization = checkpoint::read_quantization(folder);
  ConvertSource source;
  std::set<std::string> scales;
  std::vector<std::pair<std::string, checkpoint::CodedTensor>> coded;
  for (const std::string& name : weights->names()) {
    // Codes go by the name that they stand for.
    std::string published = name;
    for (const std::string_view tail : {"_blocks", "_packed"})
      if (published.ends_with(tail)) published.resize(published.size() - tail.size());
    auto found = checkpoint::find_coded(*weights, published);
    if (found.values == nullptr || found.values->name != name)
      found = {checkpoint::Coding::plain, weights->find(name), nullptr}, published = name;
    if (found.scales != nullptr) scales.insert(found.scales->name);
    coded.emplace_back(std::move(published), found);
  }
  int num_quantized = 0;
  for (const auto& [name, tensor] : coded) {
    const bool plain = tensor.coding == checkpoint::Coding::plain;
    if (plain && scales.contains(name)) continue;
    const auto stored = safetensors::same_dtype(tensor.values->dtype);
    if (!plain) ++num_quantized;
    if (plain && !stored) {  // nothing that Rhea computes with: passed on
      source.tensors.push_back({{name, tensor.values->dtype, tensor.values->shape},
                                [view = tensor.values](const Sink& sink) { sink(view->bytes); }});
      continue;
    }
    const DType own = plain ? *stored : DType::bf16;
    const DType dtype =
        options.export_dtype ? checkpoint::export_dtype(name, own, *options.export_dtype) : own;
    const safetensors::TensorSpec spec{name, safetensors::element_type_of(dtype),
                                       tensor.shape(quantization.fp8_block_size)};
    if (plain)
      source.tensors.push_back(
          {spec, [weights, view = tensor.values, dtype](const Sink& sink) {
             safetensors::write_converted(
                 view->dtype, view->bytes, dtype, sink,
                 [&](std::span<const std::byte> read) { weights->release(read); });
           }});
    else
      source.tensors.push_back(
          whole(spec, [weights, tensor = tensor, block = quantization.fp8_block_size,
                       dtype](std::span<std::byte> out) {
            checkpoint::decode(tensor, block, dtype, out);
            weights->release(tensor.values->bytes);
          }));
  }
  if (num_quantized > 0)
    log::info("convert", "{} tensors are FP8 blocks or MXFP4 and will be converted.",
              num_quantized);
  if (fs::exists(folder / safetensors::kIndexName))
    source.shards_like = safetensors::read_index(folder / safetensors::kIndexName);
  source.keep = weights;
  source.hf_folder = folder;
  source.take_files(folder);
  return source;
}

// --- adapters of PEFT, merged into the weights of their base model

fs::path base_of(const ConvertOptions& options, const std::string& base_model) {
  if (!options.hf_assets_path.empty()) return options.hf_assets_path;
  if (fs::is_directory(base_model)) return base_model;
  throw Error(
      "{} holds LoRA adapters alone; name the folder of their base model{} with --hf_assets_path",
      options.from.string(), base_model.empty() ? "" : fmt::format(" ('{}')", base_model));
}

ConvertSource from_adapters(const ConvertOptions& options) {
  const auto adapters = std::make_shared<const checkpoint::PublishedAdapters>(
      checkpoint::read_published_adapters(options.from));
  const fs::path base = base_of(options, adapters->base_model);
  ConvertSource source = from_hf(options, base);
  const auto& entries = adapters->set.entries();
  std::vector<std::string> weights;
  for (const auto& entry : entries) weights.push_back(entry.adapter.module + ".weight");
  const auto stored = std::make_shared<const checkpoint::StoredWeights>(base, weights);
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string name = stored->spelled(weights[i]);
    const auto at = std::ranges::find(source.tensors, name,
                                      [](const TensorSource& tensor) { return tensor.spec.name; });
    const auto form = stored->find(weights[i]);
    if (at == source.tensors.end() || !form)
      throw Error("{} has an adapter of '{}', and {} holds no '{}'", options.from.string(),
                  entries[i].adapter.module, base.string(), weights[i]);
    checkpoint::require_fit(entries[i], form->shape);
    at->write = [stored, adapters, form = *form, entry = entries[i],
                 spec = at->spec](const Sink& sink) {
      checkpoint::NamedTensor merged{spec.name, DType::f32, spec.shape};
      std::vector<std::byte> bytes(static_cast<size_t>(merged.num_bytes()));
      merged.data = bytes.data();
      stored->read(form, DType::f32, bytes);
      checkpoint::merge_adapter(entry, merged);
      safetensors::write_converted(safetensors::ElementType::F32, bytes,
                                   safetensors::same_dtype(spec.dtype).value(), sink);
    };
  }
  log::info("convert", "Merging {} adapters of {} into the weights of {}.", entries.size(),
            options.from.string(), base.string());
  return source;
}

// --- a GGUF file

ConvertSource from_gguf(const ConvertOptions& options) {
  const auto file = std::make_shared<const gguf::File>(options.from);
  ConvertSource source;
  source.config_name = options.from.string();
  const gguf::PublishedFiles files = gguf::published_files(*file);
  const DType wanted = options.export_dtype.value_or(DType::f32);
  for (gguf::PublishedTensor& tensor : gguf::published_tensors(*file)) {
    const DType dtype = checkpoint::export_dtype(tensor.name, DType::f32, wanted);
    source.tensors.push_back(
        whole({tensor.name, safetensors::element_type_of(dtype), std::move(tensor.shape)},
              [file, origin = tensor.source, read = std::move(tensor.read),
               dtype](std::span<std::byte> out) {
                read(dtype, out);
                file->release(*origin);
              }));
  }
  source.keep = file;
  source.is_gguf = true;
  for (const auto& [name, text] :
       {std::pair("config.json", &files.config_json),
        std::pair("generation_config.json", &files.generation_config_json),
        std::pair("tokenizer.json", &files.tokenizer_json),
        std::pair("tokenizer_config.json", &files.tokenizer_config_json),
        std::pair("chat_template.jinja", &files.chat_template)})
    if (!text->empty()) source.files[name] = *text;
  return source;
}

// --- a step folder of our own

// Native tensors are read whole, with their adapters merged in; the parts of one follow each other
// often enough that the last few are kept.
class NativeTensors {
 public:
  explicit NativeTensors(const fs::path& folder) : reader_(folder), adapters_(reader_) {}
  const checkpoint::StepReader& reader() const { return reader_; }

  const std::vector<std::byte>& bytes(const std::string& name) const {
    for (const auto& [kept, data] : kept_)
      if (kept == name) return data;
    const auto& stored = reader_.manifest().tensors.at(name);
    constexpr size_t kMost = 2;
    if (kept_.size() == kMost) kept_.erase(kept_.begin());
    auto& [kept, data] = kept_.emplace_back(name, std::vector<std::byte>());
    int64_t count = 1;
    for (const int64_t dim : stored.shape) count *= dim;
    data.resize(static_cast<size_t>(count * dtype_size(stored.dtype)));
    const checkpoint::NamedTensor tensor{name, stored.dtype, stored.shape, data.data()};
    reader_.read(tensor);
    if (const auto adapter = adapters_.set().of_weight(name))
      checkpoint::merge_adapter(*adapter, tensor);
    return data;
  }

 private:
  checkpoint::StepReader reader_;
  checkpoint::StoredAdapters adapters_;
  mutable std::vector<std::pair<std::string, std::vector<std::byte>>> kept_;
};

void write_part(const std::vector<std::byte>& native, DType stored, const std::string& name,
                const checkpoint::HfPart& part, DType dtype, const Sink& sink) {
  const auto type = safetensors::element_type_of(stored);
  if (part.rows.empty()) return safetensors::write_converted(type, native, dtype, sink);
  const checkpoint::HfRows rows(part, name, static_cast<int64_t>(native.size()),
                                dtype_size(stored));
  std::vector<std::byte> picked(static_cast<size_t>(rows.num_rows * rows.row_bytes));
  rows.for_each(part, [&](int64_t hf, int64_t row) {
    std::memcpy(picked.data() + hf * rows.row_bytes, native.data() + row * rows.row_bytes,
                static_cast<size_t>(rows.row_bytes));
  });
  safetensors::write_converted(type, picked, dtype, sink);
}

ConvertSource from_native(const ConvertOptions& options, const ModelFolder& files) {
  const auto tensors = std::make_shared<const NativeTensors>(files.path);
  const checkpoint::KeyMap key_map = published_names(files);
  ConvertSource source;
  std::vector<std::string> without_key;
  for (const auto& [name, stored] : tensors->reader().manifest().tensors) {
    if (checkpoint::is_optimizer_state(name) || checkpoint::is_adapter(name)) continue;
    const auto parts = key_map.to_hf(name, stored.shape);
    if (parts.empty()) without_key.push_back(name);
    for (const checkpoint::HfPart& part : parts) {
      const DType dtype = checkpoint::export_dtype(part.name, stored.dtype,
                                                   options.export_dtype.value_or(stored.dtype));
      source.tensors.push_back(
          {{part.name, safetensors::element_type_of(dtype), part.shape},
           [tensors, name = name, own = stored.dtype, part, dtype](const Sink& sink) {
             write_part(tensors->bytes(name), own, name, part, dtype, sink);
           }});
    }
  }
  if (!without_key.empty())
    log::warning("convert", "Left out, because Hugging Face has no key for them: {}.",
                 fmt::join(without_key, ", "));
  source.files = checkpoint::tokenizer_files(files.tokenizer);
  source.files["config.json"] = files.config_json;
  std::string generation = checkpoint::text_of(files.assets, "generation_config.json");
  if (!generation.empty()) source.files["generation_config.json"] = std::move(generation);
  source.config_name = files.config_name;
  return source;
}

}  // namespace

checkpoint::KeyMap published_names(const ModelFolder& files) {
  const auto published = models::hf::parse_config(files.config_json, files.config_name);
  const ModelSpec spec = models::make_spec(
      files.family, models::kFromConfig,
      models::build_published(files.family, published, files.config_name), "flex");
  return make_key_map(spec);
}

ConvertSource open_source(const ConvertOptions& options) {
  if (!fs::exists(options.from)) throw Error("{} does not exist", options.from.string());
  if (fs::is_regular_file(options.from)) {
    // A damaged file of that name is told what is wrong with it.
    if (gguf::File::is_gguf(options.from) || options.from.extension() == ".gguf")
      return from_gguf(options);
    throw Error("{} is a file, but no GGUF file; name the folder of a model",
                options.from.string());
  }
  if (is_adapter_folder(options.from)) return from_adapters(options);
  if (safetensors::Weights::exist(options.from) &&
      !fs::exists(options.from / checkpoint::kManifestName))
    return from_hf(options, options.from);
  const ModelFolder files = find_model(options.from);
  if (!files.is_native) throw Error("{} has a config.json, but no weights", options.from.string());
  return from_native(options, files);
}

void ConvertSource::take_files(const fs::path& folder) {
  files = checkpoint::tokenizer_files(folder);
  for (const char* name : {"config.json", "generation_config.json"}) {
    std::string text = checkpoint::text_of(folder, name);
    if (!text.empty()) files[name] = std::move(text);
  }
  config_name = (folder / "config.json").string();
}

}  // namespace rhea
