// Checks that the parts of a model belong together, then writes them.
#include "rhea/convert.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/base/output_folder.h"
#include "rhea/components/checkpoint/hf_folder.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/components/tokenizer/tokenizer.h"
#include "rhea/convert_adapters.h"
#include "rhea/convert_native.h"
#include "rhea/convert_source.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/models/registry.h"
#include "rhea/published_tensors.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;
using safetensors::TensorSource;

// The dtype that most bytes of the floats have.
DType main_dtype(const std::vector<TensorSource>& tensors) {
  std::map<DType, uint64_t> bytes;
  for (const TensorSource& tensor : tensors) {
    const auto dtype = safetensors::same_dtype(tensor.spec.dtype);
    if (dtype && is_float(*dtype))
      bytes[*dtype] += safetensors::tensor_bytes(tensor.spec.dtype, tensor.spec.shape, "");
  }
  const auto most =
      std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; });
  return most == bytes.end() ? DType::f32 : most->first;
}

bool is_vocabulary(const std::string& file) {
  return file == "tokenizer.json" || file.ends_with(".model") || file.ends_with(".tiktoken") ||
         file == "vocab.json" || file == "vocab.txt" || file == "tekken.json";
}

// A tokenizer beyond the embedding makes a model that no command runs. That of the input itself may
// be of a kind that is only carried along.
void check_tokenizer(const ConvertOptions& options, const ConvertSource& source,
                     int64_t vocab_size) {
  if (std::ranges::none_of(source.files,
                           [](const auto& file) { return is_vocabulary(file.first); }))
    return log::warning("convert", "There are no tokenizer files beside the model.");
  const bool of_assets = !options.hf_assets_path.empty();
  if (!of_assets && !source.is_gguf) return;
  std::vector<std::string> warnings;
  const auto tokenizer = of_assets
                             ? tokenizer::load_tokenizer(options.hf_assets_path, &warnings)
                             : tokenizer::parse_tokenizer(source.files.at("tokenizer.json"), "",
                                                          options.from.string(), &warnings);
  try {
    tokenizer::check_vocabulary(*tokenizer, vocab_size);
  } catch (const Error& error) {
    throw Error("the tokenizer of {} does not fit the model of {}: {}",
                of_assets ? options.hf_assets_path.string() : options.from.string(),
                source.config_name, error.what());
  }
}

// The config.json of the assets must describe the model that the weights are of: shapes alone do
// not tell a rope_theta or an epsilon of another model.
void check_same_model(const ConvertOptions& options, const ConvertSource& source,
                      const models::hf::PublishedConfig& own) {
  const auto assets = models::hf::read_config(options.hf_assets_path / "config.json");
  auto found = models::hf::differences(own.decoder, assets);
  if (own.model_type != assets.model_type)
    found.insert(found.begin(), fmt::format("model_type: the model has {}, config.json has {}",
                                            own.model_type, assets.model_type));
  if (found.empty()) return;
  const std::string text =
      fmt::format("--hf_assets_path: {} is the config of another model than {}:\n  {}",
                  (options.hf_assets_path / "config.json").string(), source.config_name,
                  fmt::join(found, "\n  "));
  if (!source.is_gguf || own.model_type != assets.model_type)
    throw Error("{}\nName the folder that the weights come from, or leave the option out", text);
  log::warning("convert", "{}\nconfig.json is taken: the metadata of GGUF is not exact", text);
}

// Everything that loading the result would refuse is refused before anything is written.
void take_assets_and_check(const ConvertOptions& options, ConvertSource& source) {
  const auto config_of = [&] {
    const auto config = source.files.find("config.json");
    if (config == source.files.end())
      throw Error("{} has no config.json; name a folder that has with --hf_assets_path",
                  options.from.string());
    return models::hf::parse_config(config->second, source.config_name);
  };
  if (!options.hf_assets_path.empty()) {
    if (!fs::exists(options.hf_assets_path / "config.json"))
      throw Error("--hf_assets_path: {} holds no config.json", options.hf_assets_path.string());
    if (source.files.contains("config.json")) check_same_model(options, source, config_of());
    source.take_files(options.hf_assets_path);
  }
  const auto published = config_of();
  const PublishedTensors asked_for(published.decoder);
  if (!source.hf_folder.empty())
    asked_for.compare(source.hf_folder);
  else
    asked_for.compare(source.tensors, options.from.string());
  check_tokenizer(options, source, published.decoder.vocab_size());
  if (!options.hf_assets_path.empty())
    source.tensors = checkpoint::spell_like(std::move(source.tensors), options.hf_assets_path);
}

// Returns the number of tensors.
size_t write_hf(const ConvertOptions& options, const fs::path& to) {
  ConvertSource source = open_source(options);
  take_assets_and_check(options, source);
  std::string& config = source.files["config.json"];
  config = checkpoint::spell_config(config, source.config_name, options.spelling,
                                    main_dtype(source.tensors));
  const size_t num_tensors = source.tensors.size();
  checkpoint::HfFolder folder{.tensors = std::move(source.tensors), .files = source.files};
  folder.shards.max_shard_bytes = options.max_shard_bytes;
  folder.shards.like = source.shards_like;
  folder.existing = Existing::refuse;
  folder.full_disk_remedy = checkpoint::kFolderRemedy;
  checkpoint::write_hf_folder(to, std::move(folder));
  return num_tensors;
}

}  // namespace

void convert(const ConvertOptions& options) {
  if (options.from.empty()) throw Error("the name of the input is empty");
  if (!options.module.empty()) models::find_family(options.module);
  check_new_folder(options.to);
  const fs::path to = folder_path(options.to);
  if (options.only_adapters) return write_adapters(options, to);
  if (options.format == ConvertOptions::Format::hf) {
    const size_t num_tensors = write_hf(options, to);
    log::info("convert", "Wrote {} tensors to {}.", num_tensors, to.string());
    return;
  }
  // A checkpoint's names and shapes come from a model, which is filled from published files.
  if (fs::is_directory(options.from)) {
    ConvertSource source = open_source(options);
    if (source.hf_folder == options.from) {
      take_assets_and_check(options, source);
      return write_native(options, options.from, to);
    }
  }
  const fs::path between = temporary_path(to, "hf-");
  const auto remove = [](const fs::path* path) {
    std::error_code ignored;
    fs::remove_all(*path, ignored);
  };
  remove(&between);
  const std::unique_ptr<const fs::path, decltype(remove)> guard(&between, remove);
  write_hf(options, between);
  write_native(options, between, to);
}

uint64_t parse_size(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr Unit kUnits[] = {
      {"", 1},     {"B", 1},        {"KB", 1e3},        {"MB", 1e6},
      {"GB", 1e9}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<size_t>(rest - text.data()));
  for (const Unit& known : kUnits) {
    const double bytes = value * known.bytes;
    if (unit == known.name && error == std::errc() && bytes >= 1 && bytes < 1e18)
      return static_cast<uint64_t>(std::llround(bytes));
  }
  throw Error("'{}' is no size; examples: 5GB, 500MB, 2GiB", text);
}

}  // namespace rhea
