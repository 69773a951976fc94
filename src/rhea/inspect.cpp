#include "rhea/inspect.h"

#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/base/text.h"
#include "rhea/components/checkpoint/peft.h"
#include "rhea/components/checkpoint/step_folder.h"
#include "rhea/components/checkpoint/step_reader.h"
#include "rhea/components/gguf/published.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/model_files.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/published_tensors.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;

struct Row {
  std::string name, type;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  std::string file = "";  // empty: there is only one
};

struct Report {
  std::vector<std::string> head;  // "key: value" lines
  std::vector<Row> rows;
  std::vector<std::string> problems;
};

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

// One line of at most `most` characters.
std::string brief(std::string text, size_t most = 100) {
  std::ranges::replace(text, '\n', ' ');
  if (text.size() <= most) return text;
  size_t cut = most;
  while (cut > 0 && (static_cast<uint8_t>(text[cut]) & 0xc0) == 0x80) --cut;  // a whole character
  return text.substr(0, cut) + "...";
}

void print(const Report& report, bool tensors, std::ostream& out) {
  for (const std::string& line : report.head) fmt::print(out, "{}\n", printable(line));
  size_t name_width = 0, type_width = 0, shape_width = 0;
  struct Sum {
    int64_t tensors = 0, elements = 0;
    uint64_t bytes = 0;
  };
  std::map<std::string, Sum> sums;
  Sum total;
  const auto shape_text = [](const Row& row) {
    return fmt::format("[{}]", fmt::join(row.shape, ", "));
  };
  for (const Row& row : report.rows) {
    name_width = std::max(name_width, row.name.size());
    type_width = std::max(type_width, row.type.size());
    shape_width = std::max(shape_width, shape_text(row).size());
    for (Sum* sum : {&sums[row.type], &total}) {
      ++sum->tensors;
      sum->elements += elements(row.shape);
      sum->bytes += row.bytes;
    }
  }
  if (tensors && !report.rows.empty()) {
    fmt::print(out, "\n");
    for (const Row& row : report.rows)
      fmt::print(out, "{:{}}  {:{}}  {:{}}  {:>15}{}\n", printable(row.name), name_width, row.type,
                 type_width, shape_text(row), shape_width,
                 with_commas(static_cast<int64_t>(row.bytes)),
                 row.file.empty() ? "" : "  " + row.file);
  }
  const auto print_sum = [&](const std::string& type, const Sum& sum) {
    fmt::print(out, "{:12}  {:>7} tensors  {:>16} elements  {:>16} bytes\n", type,
               with_commas(sum.tensors), with_commas(sum.elements),
               with_commas(static_cast<int64_t>(sum.bytes)));
  };
  fmt::print(out, "\n");
  for (const auto& [type, sum] : sums) print_sum(type, sum);
  print_sum("all", total);
  if (report.problems.empty()) {
    fmt::print(out, "\nno problems found\n");
    return;
  }
  fmt::print(out, "\n{} problem(s):\n", report.problems.size());
  for (const std::string& problem : report.problems) fmt::print(out, "  {}\n", printable(problem));
}

// --- safetensors

void add_file(const safetensors::File& file, const std::string& label, Report& report) {
  for (const auto& [key, value] : file.metadata())
    report.head.push_back(
        fmt::format("metadata {}{}: {}", label.empty() ? "" : label + ": ", key, brief(value)));
  for (const auto& tensor : file.tensors())
    report.rows.push_back({tensor.name, std::string(safetensors::element_type_name(tensor.dtype)),
                           tensor.shape, tensor.bytes.size(), label});
}

void check_index(const fs::path& folder, const safetensors::Weights& weights, Report& report) {
  const fs::path path = folder / safetensors::kIndexName;
  if (!fs::exists(path)) return;
  std::set<std::string> named;
  for (const auto& file : weights.files()) named.insert(file.path().filename().string());
  for (const auto& item : fs::directory_iterator(folder))
    if (item.path().extension() == ".safetensors" &&
        !named.contains(item.path().filename().string()))
      report.problems.push_back(fmt::format("{} is not read: {} does not name it",
                                            item.path().filename().string(),
                                            safetensors::kIndexName));
  uint64_t bytes = 0;
  for (const auto& file : weights.files())
    for (const auto& tensor : file.tensors()) {
      bytes += tensor.bytes.size();
      if (weights.find(tensor.name) == nullptr)
        report.problems.push_back(fmt::format("{} is in {}, but not in the index", tensor.name,
                                              file.path().filename().string()));
    }
  const auto index = parse_json_or_discard(read_file(path));
  const auto total =
      index.value(nlohmann::json::json_pointer("/metadata/total_size"), nlohmann::json());
  if (total.is_number_unsigned() && total.get<uint64_t>() != bytes)
    report.problems.push_back(
        fmt::format("the index states a total_size of {} bytes, the tensors have {}",
                    total.get<uint64_t>(), bytes));
}

// Names and shapes that the config.json of the folder asks for.
void check_model(const fs::path& folder, Report& report) {
  const fs::path path = folder / "config.json";
  if (!fs::exists(path)) {
    report.problems.push_back("there is no config.json");
    return;
  }
  const auto published = models::hf::read_config(path);
  const PublishedTensors asked_for(published.decoder);
  report.head.push_back(fmt::format("model: {}, {} parameters", published.model_type,
                                    with_commas(asked_for.num_parameters())));
  asked_for.compare(folder);
}

Report inspect_hf(const fs::path& folder) {
  Report report;
  const safetensors::Weights weights(folder);
  report.head.push_back(fmt::format("{}: Hugging Face weights in {} file(s)", folder.string(),
                                    weights.files().size()));
  for (const auto& file : weights.files())
    add_file(file, weights.files().size() > 1 ? file.path().filename().string() : "", report);
  std::ranges::sort(report.rows, {}, &Row::name);
  check_index(folder, weights, report);
  try {
    check_model(folder, report);
  } catch (const Error& error) {
    report.problems.push_back(error.what());
  }
  return report;
}

// --- the other kinds

Report inspect_adapters(const fs::path& folder) {
  Report report;
  const fs::path file = folder / checkpoint::kAdapterFile;
  report.head.push_back(fmt::format("{}: LoRA adapters as PEFT stores them", folder.string()));
  if (fs::exists(file)) add_file(safetensors::File(file), "", report);
  try {
    const auto adapters = checkpoint::read_published_adapters(folder);
    const auto& first = adapters.set.entries().front().adapter;
    report.head.push_back(fmt::format("adapters: {} of rank {}, alpha {}, base model '{}'",
                                      adapters.set.entries().size(), first.rank, first.alpha,
                                      adapters.base_model));
  } catch (const Error& error) {
    report.problems.push_back(error.what());
  }
  return report;
}

std::string value_text(const gguf::Value& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::string>)
          return brief(held);
        else if constexpr (std::is_same_v<T, bool> || std::is_arithmetic_v<T>)
          return fmt::format("{}", held);
        else
          return fmt::format(
              "{} values: {}", held.size(),
              brief(fmt::format(
                  "{}", fmt::join(held.begin(),
                                  held.begin() +
                                      static_cast<std::ptrdiff_t>(std::min<size_t>(held.size(), 8)),
                                  ", "))));
      },
      value);
}

Report inspect_gguf(const fs::path& path) {
  Report report;
  const gguf::File file(path);
  report.head.push_back(fmt::format("{}: GGUF version {}", path.string(), file.version()));
  for (const auto& field : file.fields())
    report.head.push_back(fmt::format("metadata {}: {}", field.key, value_text(field.value)));
  for (const auto& tensor : file.tensors())
    report.rows.push_back(
        {tensor.name, std::string(tensor.type->name), tensor.shape, tensor.blocks.size()});
  try {
    gguf::published_tensors(file);
    gguf::published_files(file);
  } catch (const Error& error) {
    report.problems.push_back(error.what());
  }
  return report;
}

Report inspect_native(const fs::path& folder) {
  Report report;
  const checkpoint::StepReader reader(folder);
  const auto& manifest = reader.manifest();
  const bool full = manifest.kind == checkpoint::Manifest::Kind::full;
  report.head.push_back(fmt::format("{}: checkpoint of step {}, {}", folder.string(), manifest.step,
                                    full ? "complete (a run can resume from it)" : "weights only"));
  for (const auto& [name, size] : manifest.files)
    report.head.push_back(
        fmt::format("file {}: {} bytes", name, with_commas(static_cast<int64_t>(size))));
  for (const auto& [part, text] : manifest.state)
    report.head.push_back(fmt::format("state {}: {}", part, brief(text)));
  std::vector<std::byte> buffer;
  for (const auto& [name, tensor] : manifest.tensors) {
    const auto bytes = static_cast<uint64_t>(elements(tensor.shape) * dtype_size(tensor.dtype));
    report.rows.push_back({name, std::string(dtype_name(tensor.dtype)), tensor.shape, bytes});
    try {
      buffer.resize(bytes);
      reader.read({name, tensor.dtype, tensor.shape, buffer.data()});
    } catch (const checkpoint::DamageError& error) {
      report.problems.push_back(error.what());
    }
  }
  return report;
}

Report inspect_file(const fs::path& path) {
  if (gguf::File::is_gguf(path) || path.extension() == ".gguf") return inspect_gguf(path);
  Report report;
  report.head.push_back(fmt::format("{}: safetensors", path.string()));
  add_file(safetensors::File(path), "", report);
  return report;
}

Report inspect_any(const fs::path& path) {
  if (!fs::exists(path)) throw Error("'{}' does not exist", path.string());
  if (fs::is_regular_file(path)) return inspect_file(path);
  if (!fs::is_directory(path)) throw Error("{} is neither a file nor a folder", path.string());
  if (fs::exists(path / checkpoint::kManifestName)) return inspect_native(path);
  if (is_adapter_folder(path)) return inspect_adapters(path);
  if (safetensors::Weights::exist(path)) return inspect_hf(path);
  find_model(path);  // says what was looked for
  throw Error("{} has a config.json, but no weights", path.string());
}

}  // namespace

bool inspect(const InspectOptions& options, std::ostream& out) {
  const Report report = inspect_any(options.path);
  print(report, options.tensors, out);
  return report.problems.empty();
}

}  // namespace rhea
