// Tensors of a GGUF file as the published ones they came from.
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/components/checkpoint/key_map.h"
#include "rhea/components/gguf/architecture.h"
#include "rhea/components/gguf/published.h"
#include "rhea/components/safetensors/element_type.h"

namespace rhea::gguf {
namespace {

// Rows that are dequantized at a time: about a megabyte, whatever the size of the tensor.
constexpr int64_t kPieceElements = 1 << 18;

// How the rows of a published tensor lie in the file.
struct Rows {
  const Tensor* tensor;
  int64_t first = 0, count = 0, columns = 0;
  std::vector<int64_t> order = {};  // empty: as they are
  float offset = 0;                 // taken off every value
};

void read_rows(const Rows& rows, DType dtype, std::span<std::byte> out) {
  const BlockType& type = *rows.tensor->type;
  const auto row_bytes = static_cast<size_t>(rows.columns / type.elements * type.bytes);
  const int64_t out_row = rows.columns * dtype_size(dtype);
  const int64_t piece = rows.order.empty()
                            ? std::clamp(kPieceElements / std::max<int64_t>(rows.columns, 1),
                                         int64_t{1}, std::max<int64_t>(rows.count, 1))
                            : 1;
  std::vector<float> values;
  for (int64_t row = 0; row < rows.count; row += piece) {
    const int64_t count = std::min(piece, rows.count - row);
    const int64_t from =
        rows.first + (rows.order.empty() ? row : rows.order[static_cast<size_t>(row)]);
    values.resize(static_cast<size_t>(count * rows.columns));
    dequantize(type,
               rows.tensor->blocks.subspan(static_cast<size_t>(from) * row_bytes,
                                           static_cast<size_t>(count) * row_bytes),
               values);
    if (rows.offset != 0)
      for (float& value : values) value -= rows.offset;
    safetensors::convert(
        safetensors::ElementType::F32, std::as_bytes(std::span(values)), dtype,
        out.subspan(static_cast<size_t>(row * out_row), static_cast<size_t>(count * out_row)));
  }
}

PublishedTensor published(std::string name, std::vector<int64_t> shape, Rows rows) {
  PublishedTensor made{std::move(name), std::move(shape), rows.tensor, nullptr};
  made.read = [rows = std::move(rows)](DType dtype, std::span<std::byte> out) {
    read_rows(rows, dtype, out);
  };
  return made;
}

// "blk.2.ffn_gate_exps.weight" as one tensor for each expert. Mixtral names its matrices w1, w3,
// w2.
bool add_experts(std::vector<PublishedTensor>& out, const Tensor& tensor,
                 const Architecture& architecture) {
  struct Matrix {
    std::string_view gguf, plain, mixtral;
  };
  constexpr Matrix kMatrices[] = {{"ffn_gate_exps", "gate_proj", "w1"},
                                  {"ffn_up_exps", "up_proj", "w3"},
                                  {"ffn_down_exps", "down_proj", "w2"}};
  if (architecture.experts.empty() || tensor.shape.size() != 3) return false;
  for (const Matrix& matrix : kMatrices) {
    const std::string tail = fmt::format(".{}.weight", matrix.gguf);
    if (!tensor.name.starts_with("blk.") || !tensor.name.ends_with(tail)) continue;
    const auto layer =
        std::string_view(tensor.name).substr(4, tensor.name.size() - 4 - tail.size());
    const auto matrix_name = architecture.model_type == "mixtral" ? matrix.mixtral : matrix.plain;
    for (int64_t e = 0; e < tensor.shape[0]; ++e) {
      const std::string experts = fmt::format(fmt::runtime(architecture.experts), e);
      out.push_back(
          published(fmt::format("model.layers.{}.{}{}.weight", layer, experts, matrix_name),
                    {tensor.shape[1], tensor.shape[2]},
                    {.tensor = &tensor,
                     .first = e * tensor.shape[1],
                     .count = tensor.shape[1],
                     .columns = tensor.shape[2]}));
    }
    return true;
  }
  return false;
}

bool is_rope_table(std::string_view name) {
  return name == "rope_freqs.weight" || name.starts_with("rope_factors_") ||
         name.ends_with(".attn_rot_embd.weight");
}

}  // namespace

std::vector<PublishedTensor> published_tensors(const File& file) {
  const Architecture& architecture = architecture_of(file);
  const auto config = config_of(file, architecture);
  const auto head_dim = config["head_dim"].get<int64_t>();
  std::vector<PublishedTensor> out;
  std::vector<std::string> unknown, unreadable;
  for (const Tensor& tensor : file.tensors()) {
    if (is_rope_table(tensor.name)) continue;  // read into the config
    if (tensor.type->dequantize == nullptr)
      unreadable.push_back(fmt::format("{} ({})", tensor.name, tensor.type->name));
    if (add_experts(out, tensor, architecture)) continue;
    const std::string name = published_name(architecture, tensor.name);
    if (name.empty() || tensor.shape.empty()) {
      unknown.push_back(tensor.name);
      continue;
    }
    std::vector<int64_t> shape = tensor.shape;
    // A gate of one output is a matrix of one row.
    if (name.ends_with("shared_expert_gate.weight") && shape.size() == 1) shape = {1, shape[0]};
    Rows rows{.tensor = &tensor, .count = 1, .columns = tensor.shape.back()};
    for (size_t d = 0; d + 1 < tensor.shape.size(); ++d) rows.count *= tensor.shape[d];
    const bool rotated = name.find(".self_attn.q_proj.") != std::string::npos ||
                         name.find(".self_attn.k_proj.") != std::string::npos;
    if (architecture.permuted && rotated) {
      if (shape.size() == 1) {  // a bias: every value is a row
        rows.count = shape[0];
        rows.columns = 1;
      }
      if (tensor.type->elements > rows.columns || head_dim % 2 != 0 || rows.count % head_dim != 0)
        throw Error("{}: '{}' is {}, which is not made of heads of {} rows", file.path().string(),
                    tensor.name, tensor.describe(), head_dim);
      rows.order = checkpoint::half_split_rows(rows.count, head_dim);
    }
    if (architecture.norms_plus_one && name.ends_with("norm.weight")) rows.offset = 1;
    out.push_back(published(name, shape, std::move(rows)));
  }
  if (!unreadable.empty())
    throw Error("{}: tensors of a type that is not read: {}; readable: {}", file.path().string(),
                fmt::join(unreadable, ", "), readable_types());
  if (!unknown.empty())
    throw Error("{}: tensors for which {} has no place: {}", file.path().string(),
                architecture.model_type, fmt::join(unknown, ", "));
  std::ranges::sort(out, {}, &PublishedTensor::name);
  return out;
}

}  // namespace rhea::gguf
