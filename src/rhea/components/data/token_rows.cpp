// Reading rows of safetensors files.
#include "rhea/components/data/token_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "rhea/base/error.h"
#include "rhea/base/log.h"

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

TokenRows::TokenRows(const std::vector<std::filesystem::path>& files, bool infinite,
                     const DataLoaderOptions& options)
    : seq_len_(options.seq_len),
      rows_per_batch_(options.rows),
      vocab_size_(options.vocab_size),
      dp_rank_(options.dp_rank),
      dp_size_(options.dp_size),
      infinite_(infinite) {
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

bool TokenRows::next_row(const RowView& view) {
  const int64_t batch = next_ / rows_per_batch_;
  const int64_t global = (batch * dp_size_ + dp_rank_) * rows_per_batch_ + next_ % rows_per_batch_;
  const int64_t row = global % num_rows_;
  if (global >= num_rows_ && !infinite_) {
    log::warning("data", "Dataset tokens has run out of data");
    return false;
  }
  if (row == 0 && global > 0)
    log::warning("data", "Dataset tokens is being re-looped (epoch {})", global / num_rows_);
  ++next_;
  const auto after =
      std::upper_bound(files_.begin(), files_.end(), row,
                       [](int64_t n, const File& file) { return n < file.first_row; });
  const File& file = *std::prev(after);
  const int64_t row_of_file = row - file.first_row;
  read_row(*file.input, row_of_file, view.input);
  if (file.labels != nullptr) {
    read_row(*file.labels, row_of_file, view.labels);
  } else {
    std::copy(view.input.begin() + 1, view.input.end(), view.labels.begin());
    view.labels.back() = kIgnoreLabel;
  }
  if (file.positions != nullptr) {
    read_row(*file.positions, row_of_file, view.positions);
  } else {
    std::iota(view.positions.begin(), view.positions.end(), 0);
  }
  check_ids(file, row_of_file, view);
  return true;
}

void TokenRows::check_ids(const File& file, int64_t row, const RowView& view) const {
  const auto check = [&](const char* name, std::span<const int32_t> values, int64_t limit,
                         bool may_ignore) {
    const auto bad = std::find_if(values.begin(), values.end(), [&](int32_t value) {
      return (value < 0 && !(may_ignore && value == kIgnoreLabel)) || (limit > 0 && value >= limit);
    });
    if (bad == values.end()) return;
    throw Error("{}: row {}, position {}: {} is {}, {}{}", file.file.path().string(), row,
                bad - values.begin(), name, *bad,
                limit > 0 ? fmt::format("outside [0, {})", limit) : "negative",
                may_ignore ? fmt::format(" and not {} (no label)", kIgnoreLabel) : "");
  };
  check("input", view.input, vocab_size_, false);
  check("label", view.labels, vocab_size_, true);
  // Positions index tables of seq_len rows, and a document is a run of them.
  check("position", view.positions, seq_len_, false);
  for (size_t i = 1; i < view.positions.size(); ++i) {
    const int32_t position = view.positions[i];
    if (position != 0 && position != view.positions[i - 1] + 1)
      throw Error(
          "{}: row {}, position {}: {} neither restarts at 0 nor follows the one before it ({})",
          file.file.path().string(), row, i, position, view.positions[i - 1]);
  }
}

Snapshot TokenRows::snapshot() const {
  return [row = next_] { return nlohmann::json{{"row", row}}; };
}

// Ranks read in step, so the rows that all of them have taken are the first ones of the list.
void TokenRows::restore(std::span<const nlohmann::json> ranks) {
  const auto row = ranks.front().at("row").get<int64_t>();
  if (row < 0) throw Error("loader state: row {} cannot be negative", row);
  next_ = row * static_cast<int64_t>(ranks.size()) / dp_size_;
}

std::string TokenRows::description() const {
  return "tokens dataset from " + files_.front().file.path().string();
}

}  // namespace rhea::data
