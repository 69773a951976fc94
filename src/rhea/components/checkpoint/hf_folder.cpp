#include "rhea/components/checkpoint/hf_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/checkpoint/progress.h"
#include "rhea/components/checkpoint/stored_weights.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea::checkpoint {
namespace {

namespace fs = std::filesystem;
using safetensors::TensorSource;

constexpr const char* kTokenizerFiles[] = {"tokenizer.json",
                                           "tokenizer_config.json",
                                           "special_tokens_map.json",
                                           "added_tokens.json",
                                           "vocab.json",
                                           "merges.txt",
                                           "vocab.txt",
                                           "tekken.json",
                                           "chat_template.jinja",
                                           "chat_template.json"};

// Of SentencePiece and tiktoken, whose files have many names.
bool is_vocabulary(const fs::path& file) {
  return file.extension() == ".model" || file.extension() == ".tiktoken";
}

std::vector<std::string> names_of(const std::vector<TensorSource>& tensors) {
  std::vector<std::string> names;
  for (const TensorSource& tensor : tensors) names.push_back(tensor.spec.name);
  return names;
}

// One tensor of the matrices of all experts, in the order of expert and part.
TensorSource join(const std::string& name, int num_parts, std::vector<TensorSource> matrices) {
  const auto& shape = matrices.front().spec.shape;
  safetensors::TensorSpec spec{
      name,
      matrices.front().spec.dtype,
      {static_cast<int64_t>(matrices.size()) / num_parts, num_parts * shape[0], shape[1]}};
  auto write = [matrices = std::move(matrices)](const safetensors::Sink& sink) {
    for (const TensorSource& matrix : matrices) matrix.write(sink);
  };
  return {std::move(spec), std::move(write)};
}

// Tensors of experts that `names` has joined, by the name that it has.
class Joins {
 public:
  explicit Joins(const std::set<std::string>& names) : names_(names) {}

  // False when the tensor is none of an expert, or `names` does not join it.
  bool take(const TensorSource& tensor) {
    const auto expert = parse_expert(tensor.spec.name);
    if (!expert) return false;
    std::string joined = expert->joined;
    if (!names_.contains(joined)) joined = other_spelling(joined);
    if (!names_.contains(joined)) return false;
    num_parts_[joined] = expert->num_parts;
    groups_[joined][{expert->expert, expert->part}] = tensor;
    return true;
  }
  void finish(std::vector<TensorSource>& out) {
    for (auto& [name, group] : groups_) {
      std::vector<TensorSource> matrices;
      for (auto& [place, tensor] : group) matrices.push_back(std::move(tensor));
      out.push_back(join(name, num_parts_[name], std::move(matrices)));
    }
  }

 private:
  const std::set<std::string>& names_;
  std::map<std::string, std::map<std::pair<int64_t, int>, TensorSource>> groups_;
  std::map<std::string, int> num_parts_;
};

// Transformers writes the matrices of parts that a config has none of (no shared experts: 0 rows)
// and looks for them again; no model here has them.
void add_empty(const safetensors::Weights& like, std::vector<TensorSource>& out) {
  std::set<std::string> names;
  for (const TensorSource& tensor : out) names.insert(tensor.spec.name);
  for (const std::string& name : like.names()) {
    const safetensors::TensorView& tensor = like.at(name);
    if (std::ranges::find(tensor.shape, 0) == tensor.shape.end() || names.contains(name)) continue;
    out.push_back({{name, tensor.dtype, tensor.shape}, [](const safetensors::Sink&) {}});
  }
}

}  // namespace

DType export_dtype(std::string_view name, DType stored, DType wanted) {
  if (!is_float(stored)) return stored;
  const bool chooses = name.ends_with("e_score_correction_bias") || name.ends_with("expert_bias_E");
  return chooses ? DType::f32 : wanted;
}

std::string text_of(const fs::path& folder, const char* name) {
  return folder.empty() || !fs::exists(folder / name) ? "" : read_file(folder / name);
}

std::map<std::string, std::string> tokenizer_files(const fs::path& from) {
  std::map<std::string, std::string> files;
  if (fs::is_regular_file(from)) {
    const bool json = from.extension() == ".json";
    files[json ? "tokenizer.json" : from.filename().string()] = read_file(from);
    return files;
  }
  for (const char* name : kTokenizerFiles) {
    std::string text = text_of(from, name);
    if (!text.empty()) files[name] = std::move(text);
  }
  if (!fs::is_directory(from)) return files;
  for (const auto& item : fs::directory_iterator(from))
    if (is_vocabulary(item.path()) && item.is_regular_file())
      files[item.path().filename().string()] = read_file(item.path());
  return files;
}

std::vector<TensorSource> spell_like(std::vector<TensorSource> tensors, const fs::path& like) {
  if (like.empty() || !safetensors::Weights::exist(like)) return tensors;
  const std::vector<std::string> published = names_of(tensors);
  const StoredWeights stored(like, published);
  const auto& list = stored.weights().names();
  const std::set<std::string> names(list.begin(), list.end());
  Joins joins(names);
  std::vector<TensorSource> out;
  for (TensorSource& tensor : tensors) {
    std::string& name = tensor.spec.name;
    const std::string other = other_spelling(name);
    if (!names.contains(stored.spelled(name)) && !other.empty() &&
        names.contains(stored.spelled(other)))
      name = other;
    name = stored.spelled(name);
    if (names.contains(name) || !joins.take(tensor)) out.push_back(std::move(tensor));
  }
  joins.finish(out);
  add_empty(stored.weights(), out);
  return out;
}

void write_hf_folder(const fs::path& path, HfFolder folder) {
  uint64_t needed = 1 << 20;
  for (const TensorSource& source : folder.tensors)
    needed +=
        safetensors::tensor_bytes(source.spec.dtype, source.spec.shape, source.spec.name) + 512;
  for (const auto& [name, text] : folder.files) needed += text.size();
  require_space(path.parent_path(), needed, folder.full_disk_remedy);
  Progress progress("Wrote", static_cast<int64_t>(folder.tensors.size()));
  for (TensorSource& source : folder.tensors) {
    source.write = [write = std::move(source.write), &progress](const safetensors::Sink& sink) {
      write(sink);
      progress.step();
    };
  }
  const auto fill = [&](const fs::path& temporary) {
    safetensors::write_sharded(temporary, std::move(folder.tensors), folder.shards);
    for (const auto& [name, text] : folder.files) write_file_atomic(temporary / name, text);
  };
  make_folder(path, fill, folder.existing);
}

}  // namespace rhea::checkpoint
