// Reading rows of safetensors files.
#include "rhea/components/data/token_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "rhea/base/error.h"

namespace rhea::data {
namespace {

using safetensors::TensorView;

void read_row(const TensorView& tensor, int64_t row, std::span<int32_t> out) {
  TensorView part = tensor;
  const size_t bytes = out.size() * static_cast<size_t>(element_bits(tensor.dtype)) / 8;
  part.bytes = tensor.bytes.subspan(static_cast<size_t>(row) * bytes, bytes);
  read_as(part, DType::i32, std::as_writable_bytes(out));
}

}  // namespace

TokenRows::TokenRows(const std::vector<std::filesystem::path>& files, int64_t seq_len)
    : seq_len_(seq_len) {
  for (const auto& path : files) open(path);
  if (num_rows_ == 0) throw Error("{}: tensor \"input\" has no rows", files.front().string());
}

void TokenRows::open(const std::filesystem::path& path) {
  File file{safetensors::File(path), num_rows_};
  file.input = &file.file.at("input");
  const auto& shape = file.input->shape;
  if ((shape.size() != 2 && shape.size() != 3) || shape.back() != seq_len_)
    throw Error(
        "{}: tensor \"input\" is {}; expected [steps, rows, {}] or [rows, {}] (training.seq_len = "
        "{})",
        path.string(), file.input->describe(), seq_len_, seq_len_, seq_len_);
  file.input = find(file, "input");
  file.labels = find(file, "labels");
  file.positions = find(file, "positions");
  num_rows_ += std::accumulate(shape.begin(), shape.end() - 1, int64_t{1}, std::multiplies<>());
  files_.push_back(std::move(file));
}

const TensorView* TokenRows::find(const File& file, const char* name) const {
  const TensorView* tensor = file.file.find(name);
  if (tensor == nullptr) return nullptr;
  if (tensor->shape != file.input->shape)
    throw Error("{}: tensor \"{}\" is {}, but \"input\" is {}; they must have the same shape",
                file.file.path().string(), name, tensor->describe(), file.input->describe());
  if (tensor->dtype != safetensors::ElementType::I32 &&
      tensor->dtype != safetensors::ElementType::I64)
    throw Error("{}: tensor \"{}\" is {}; token rows are I32 or I64", file.file.path().string(),
                name, tensor->describe());
  return tensor;
}

const TokenRows::File& TokenRows::file_of(int64_t number) const {
  const auto after =
      std::upper_bound(files_.begin(), files_.end(), number,
                       [](int64_t n, const File& file) { return n < file.first_row; });
  return *std::prev(after);
}

void TokenRows::read(int64_t number, const RowView& view) const {
  const File& file = file_of(number);
  const int64_t row = number - file.first_row;
  read_row(*file.input, row, view.input);
  fill_from_input(view);
  if (file.labels != nullptr) read_row(*file.labels, row, view.labels);
  if (file.positions != nullptr) read_row(*file.positions, row, view.positions);
}

std::string TokenRows::description() const { return files_.front().file.path().string(); }

std::string TokenRows::place(int64_t number) const {
  const File& file = file_of(number);
  return fmt::format("{}: row {}", file.file.path().string(), number - file.first_row);
}

}  // namespace rhea::data
