// Search in the order: as it is, the other spelling, cut out of a joined tensor, joined from
// experts.
#include "rhea/components/checkpoint/stored_weights.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "rhea/base/error.h"

namespace rhea::checkpoint {
namespace {

using safetensors::TensorView;

struct MatrixName {
  std::string_view plain, mixtral;
  int part, num_parts;
};
constexpr std::array kMatrices = {MatrixName{"gate_proj", "w1", 0, 2},
                                  MatrixName{"up_proj", "w3", 1, 2},
                                  MatrixName{"down_proj", "w2", 0, 1}};
constexpr std::string_view kPlainBlock = ".mlp.", kMixtralBlock = ".block_sparse_moe.";
constexpr std::string_view kExperts = "experts.", kWeight = ".weight";

int64_t product(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

// `block` and what is around it.
struct Cut {
  std::string_view before, after;
};
std::optional<Cut> cut_at(std::string_view name, std::string_view block) {
  const size_t at = name.find(block);
  if (at == std::string_view::npos) return {};
  return Cut{name.substr(0, at), name.substr(at + block.size())};
}

// "experts.3.up_proj.weight" -> 3 and the matrix.
struct Expert {
  std::string_view number;
  const MatrixName* matrix;
};
std::optional<Expert> expert_of(std::string_view text) {
  if (!text.starts_with(kExperts) || !text.ends_with(kWeight)) return {};
  text = text.substr(kExperts.size(), text.size() - kExperts.size() - kWeight.size());
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos || dot == 0 || dot > 9 ||
      text.substr(0, dot).find_first_not_of("0123456789") != std::string_view::npos)
    return {};
  for (const MatrixName& matrix : kMatrices) {
    const auto name = text.substr(dot + 1);
    if (name == matrix.plain || name == matrix.mixtral) return Expert{text.substr(0, dot), &matrix};
  }
  return {};
}

}  // namespace

std::string other_spelling(std::string_view name) {
  for (const bool mixtral : {true, false}) {
    const auto cut = cut_at(name, mixtral ? kMixtralBlock : kPlainBlock);
    if (!cut) continue;
    const auto block = mixtral ? kPlainBlock : kMixtralBlock;
    if (cut->after == "gate.weight") return fmt::format("{}{}gate.weight", cut->before, block);
    if (const auto expert = expert_of(cut->after))
      return fmt::format("{}{}{}{}.{}{}", cut->before, block, kExperts, expert->number,
                         mixtral ? expert->matrix->plain : expert->matrix->mixtral, kWeight);
    if (cut->after == "experts.gate_up_proj" || cut->after == "experts.down_proj")
      return fmt::format("{}{}{}", cut->before, block, cut->after);
  }
  return "";
}

std::optional<ExpertName> parse_expert(std::string_view name) {
  const size_t at = name.find(kExperts);
  if (at == std::string_view::npos) return {};
  const auto expert = expert_of(name.substr(at));
  if (!expert) return {};
  ExpertName found;
  std::from_chars(expert->number.data(), expert->number.data() + expert->number.size(),
                  found.expert);
  found.part = expert->matrix->part;
  found.num_parts = expert->matrix->num_parts;
  found.joined = fmt::format("{}{}{}", name.substr(0, at), kExperts,
                             found.num_parts == 2 ? "gate_up_proj" : "down_proj");
  return found;
}

std::string base_prefix(std::span<const std::string> names) {
  std::map<std::string_view, size_t> counts;
  for (const std::string& name : names)
    if (const size_t dot = name.find('.'); dot != std::string::npos)
      ++counts[std::string_view(name).substr(0, dot + 1)];
  for (const auto& [prefix, count] : counts)
    if (count * 2 > names.size()) return std::string(prefix);
  return "";
}

StoredWeights::StoredWeights(const std::filesystem::path& folder,
                             std::span<const std::string> names)
    : weights_(folder), quantization_(read_quantization(folder)) {
  const std::string prefix = base_prefix(names);
  const auto& stored = weights_.names();
  if (!prefix.empty() && std::ranges::none_of(stored, [&](const std::string& name) {
        return name.starts_with(prefix);
      }))
    dropped_prefix_ = prefix;
}

std::string StoredWeights::spelled(const std::string& name) const {
  return name.starts_with(dropped_prefix_) ? name.substr(dropped_prefix_.size()) : name;
}

const TensorView* StoredWeights::plain(const std::string& name) const {
  return weights_.find(spelled(name));
}

CodedTensor StoredWeights::coded(const std::string& name) const {
  CodedTensor found = find_coded(weights_, spelled(name));
  if (found.values != nullptr) return found;
  const std::string other = other_spelling(name);
  return other.empty() ? found : find_coded(weights_, spelled(other));
}

std::optional<StoredForm> StoredWeights::find(const std::string& name) const {
  const CodedTensor found = coded(name);
  if (found.values == nullptr) {
    auto joined = from_joined(name);
    return joined ? joined : from_experts(name);
  }
  StoredForm tensor{found.shape(quantization_.fp8_block_size), {}};
  tensor.pieces.push_back({found, {}, product(tensor.shape)});
  return tensor;
}

std::optional<StoredForm> StoredWeights::from_joined(const std::string& name) const {
  const auto expert = parse_expert(name);
  if (!expert) return {};
  const CodedTensor joined = coded(expert->joined);
  if (joined.values == nullptr || joined.coding != Coding::plain) return {};
  const auto& shape = joined.values->shape;
  if (shape.size() != 3 || expert->expert >= shape[0] || shape[1] % expert->num_parts != 0)
    return {};
  StoredForm tensor{{shape[1] / expert->num_parts, shape[2]}, {}};
  const int64_t count = product(tensor.shape);
  tensor.pieces.push_back(
      {joined, std::pair((expert->expert * expert->num_parts + expert->part) * count, count),
       count});
  return tensor;
}

std::optional<StoredForm> StoredWeights::from_experts(const std::string& name) const {
  const bool gate_up = name.ends_with("experts.gate_up_proj");
  if (!gate_up && !name.ends_with("experts.down_proj")) return {};
  const auto stem = name.substr(0, name.rfind('.') + 1);
  StoredForm tensor;
  std::vector<int64_t> first;
  int64_t num_experts = 0;
  const auto add = [&](std::string_view matrix) {
    const auto part = fmt::format("{}{}.{}{}", stem, num_experts, matrix, kWeight);
    const CodedTensor found = coded(part);
    if (found.values == nullptr) return false;
    const auto shape = found.shape(quantization_.fp8_block_size);
    if (first.empty()) first = shape;
    if (shape != first || shape.size() != 2)
      throw Error("{}: '{}' is {}, the first expert of '{}' has another shape",
                  weights_.path().string(), found.values->name, found.values->describe(), name);
    tensor.pieces.push_back({found, {}, product(shape)});
    return true;
  };
  while (gate_up ? add("gate_proj") && add("up_proj") : add("down_proj")) ++num_experts;
  const auto num_parts = gate_up ? size_t{2} : size_t{1};
  if (num_experts == 0 || tensor.pieces.size() != num_parts * static_cast<size_t>(num_experts))
    return {};
  tensor.shape = {num_experts, static_cast<int64_t>(num_parts) * first[0], first[1]};
  return tensor;
}

void StoredWeights::read_plain(const TensorView& tensor, std::pair<int64_t, int64_t> range,
                               DType dtype, std::span<std::byte> out) const {
  constexpr int64_t kPiece = 1 << 20;  // elements; fills whole bytes in every type
  const int64_t bits = safetensors::element_bits(tensor.dtype), item = dtype_size(dtype);
  TensorView part{tensor.name, tensor.dtype, {}, {}};
  for (int64_t at = 0; at < range.second; at += kPiece) {
    const int64_t count = std::min(kPiece, range.second - at);
    part.bytes = tensor.bytes.subspan(static_cast<size_t>((range.first + at) * bits / 8),
                                      static_cast<size_t>(count * bits / 8));
    safetensors::read_as(
        part, dtype,
        out.subspan(static_cast<size_t>(at * item), static_cast<size_t>(count * item)));
    weights_.release(part.bytes);
  }
}

void StoredWeights::read(const StoredForm& tensor, DType dtype, std::span<std::byte> out) const {
  size_t at = 0;
  for (const StoredForm::Piece& piece : tensor.pieces) {
    const auto bytes = static_cast<size_t>(piece.num_elements * dtype_size(dtype));
    const auto to = out.subspan(at, bytes);
    if (piece.coded.coding == Coding::plain) {
      read_plain(*piece.coded.values,
                 piece.range.value_or(std::pair(int64_t{0}, piece.num_elements)), dtype, to);
    } else {
      decode(piece.coded, quantization_.fp8_block_size, dtype, to);
      weights_.release(piece.coded.values->bytes);
    }
    at += bytes;
  }
}

}  // namespace rhea::checkpoint
