#include "rhea/components/checkpoint/adapters.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea::checkpoint {
namespace {

using nlohmann::json;

constexpr std::string_view kA = ".lora_a.weight", kB = ".lora_b.weight", kWeight = ".weight";

std::vector<float> as_floats(const NamedTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  safetensors::convert(safetensors::element_type_of(tensor.dtype), tensor.bytes(), DType::f32,
                       std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

bool is_adapter(std::string_view name) { return name.ends_with(kA) || name.ends_with(kB); }

std::string adapter_name(std::string_view module, bool is_a) {
  return fmt::format("{}{}", module, is_a ? kA : kB);
}

AdapterSet::AdapterSet(std::span<const Adapter> adapters, std::span<const NamedTensor> tensors) {
  std::map<std::string_view, const NamedTensor*> by_name;
  for (const NamedTensor& tensor : tensors) by_name.emplace(tensor.name, &tensor);
  for (const Adapter& adapter : adapters) {
    const auto find = [&](bool is_a) {
      const std::string name = adapter_name(adapter.module, is_a);
      const auto at = by_name.find(name);
      if (at == by_name.end()) throw Error("the adapter of '{}' lacks '{}'", adapter.module, name);
      return *at->second;
    };
    Entry entry{adapter, find(true), find(false)};
    if (entry.a.shape.size() != 2 || entry.b.shape.size() != 2 ||
        entry.a.shape[0] != adapter.rank || entry.b.shape[1] != adapter.rank)
      throw Error("the adapter of '{}' has A [{}] and B [{}], expected [{}, in] and [out, {}]",
                  adapter.module, fmt::join(entry.a.shape, ", "), fmt::join(entry.b.shape, ", "),
                  adapter.rank, adapter.rank);
    entries_.push_back(std::move(entry));
  }
}

std::optional<AdapterSet::Entry> AdapterSet::of_weight(std::string_view name) const {
  if (!name.ends_with(kWeight)) return std::nullopt;
  name.remove_suffix(kWeight.size());
  const auto at = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return entry.adapter.module == name; });
  return at == entries_.end() ? std::nullopt : std::optional(*at);
}

void require_fit(const AdapterSet::Entry& entry, std::span<const int64_t> weight_shape) {
  std::vector<int64_t> shape = {entry.b.shape[0], entry.a.shape[1]};
  if (entry.adapter.transposed) std::swap(shape[0], shape[1]);
  if (!std::ranges::equal(weight_shape, shape))
    throw Error("the adapter of '{}' is for a weight [{}], and the weight is [{}]",
                entry.adapter.module, fmt::join(shape, ", "), fmt::join(weight_shape, ", "));
}

void merge_adapter(const AdapterSet::Entry& entry, const NamedTensor& weight) {
  require_fit(entry, weight.shape);
  const int64_t rank = entry.adapter.rank, in = entry.a.shape[1];
  const bool transposed = entry.adapter.transposed;
  const std::vector<float> a = as_floats(entry.a), b = as_floats(entry.b);
  const auto scale =
      static_cast<float>(entry.adapter.alpha / static_cast<double>(entry.adapter.rank));
  const auto element = safetensors::element_type_of(weight.dtype);
  const int64_t item = dtype_size(weight.dtype);
  // A row of the stored weight at a time.
  const int64_t rows = weight.shape[0], columns = weight.shape[1];
  std::vector<float> row(static_cast<size_t>(columns)), delta(static_cast<size_t>(columns));
  for (int64_t r = 0; r < rows; ++r) {
    std::ranges::fill(delta, 0.0F);
    for (int64_t k = 0; k < rank; ++k) {
      for (int64_t c = 0; c < columns; ++c) {
        const float left = transposed ? b[static_cast<size_t>(c * rank + k)]
                                      : b[static_cast<size_t>(r * rank + k)];
        const float right =
            transposed ? a[static_cast<size_t>(k * in + r)] : a[static_cast<size_t>(k * in + c)];
        delta[static_cast<size_t>(c)] += left * right;
      }
    }
    const auto bytes = weight.writable_bytes().subspan(static_cast<size_t>(r * columns * item),
                                                       static_cast<size_t>(columns * item));
    safetensors::convert(element, bytes, DType::f32, std::as_writable_bytes(std::span(row)));
    for (size_t c = 0; c < row.size(); ++c) row[c] += scale * delta[c];
    safetensors::convert(safetensors::ElementType::F32, std::as_bytes(std::span(row)), weight.dtype,
                         bytes);
  }
}

StoredAdapters::StoredAdapters(const StepReader& reader) {
  const auto& state = reader.manifest().state;
  const auto text = state.find("adapters");
  const auto adapters = text == state.end() ? std::vector<Adapter>()
                                            : read_adapters(text->second, reader.path().string());
  for (const auto& [name, stored] : reader.manifest().tensors) {
    if (!is_adapter(name)) continue;
    NamedTensor tensor{name, stored.dtype, stored.shape, nullptr};
    tensor.data = memory_.emplace_back(static_cast<size_t>(tensor.num_bytes())).data();
    reader.read(tensor);
    tensors_.push_back(std::move(tensor));
  }
  if (adapters.empty() && !tensors_.empty())
    throw Error("{} holds '{}', but does not say how much its adapters count",
                reader.path().string(), tensors_.front().name);
  set_.emplace(adapters, tensors_);
}

std::string adapters_text(std::span<const Adapter> adapters) {
  json list = json::array();
  for (const Adapter& adapter : adapters)
    list.push_back({{"module", adapter.module},
                    {"rank", adapter.rank},
                    {"alpha", adapter.alpha},
                    {"transposed", adapter.transposed}});
  return list.dump();
}

std::vector<Adapter> read_adapters(const std::string& text, const std::string& source) {
  std::vector<Adapter> adapters;
  try {
    for (const json& item : parse_json(text))
      adapters.push_back({.module = item.at("module"),
                          .rank = item.at("rank"),
                          .alpha = item.at("alpha"),
                          .transposed = item.at("transposed")});
  } catch (const json::exception& error) {
    throw Error("{}: its list of adapters cannot be read: {}", source, error.what());
  }
  return adapters;
}

}  // namespace rhea::checkpoint
