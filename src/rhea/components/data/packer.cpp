// The packings.
#include "rhea/components/data/packer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "rhea/base/error.h"

namespace rhea::data {
namespace {

// Writes `count` positions of a document, from token `begin` on, to the row at `to`.
void write_positions(const Tokens& document, size_t begin, size_t count, const RowView& row,
                     size_t to) {
  const auto offset = [](size_t n) { return static_cast<std::ptrdiff_t>(n); };
  std::copy_n(document.begin() + offset(begin), count, row.input.begin() + offset(to));
  std::copy_n(document.begin() + offset(begin + 1), count, row.labels.begin() + offset(to));
  const auto positions = row.positions.subspan(to, count);
  std::iota(positions.begin(), positions.end(), 0);
}

}  // namespace

bool ConcatPacker::next_row(const RowView& row, const NextDocument& next) {
  size_t filled = 0;
  while (filled < row.input.size()) {
    if (begin_ + 1 >= document_.size()) {
      begin_ = 0;
      if (!carried_.empty()) {
        document_ = std::move(carried_.front());
        carried_.pop_front();
      } else if (!next(document_)) {
        document_.clear();
        return false;
      }
    }
    const size_t count = std::min(row.input.size() - filled, document_.size() - 1 - begin_);
    write_positions(document_, begin_, count, row, filled);
    begin_ += count;
    filled += count;
  }
  return true;
}

nlohmann::json ConcatPacker::state() const {
  nlohmann::json carry = nlohmann::json::array();
  if (begin_ + 1 < document_.size())
    carry.push_back(
        Tokens(document_.begin() + static_cast<std::ptrdiff_t>(begin_), document_.end()));
  for (const Tokens& part : carried_) carry.push_back(part);
  return {{"carry", std::move(carry)}};
}

void ConcatPacker::restore(std::span<const nlohmann::json> states) {
  document_.clear();
  begin_ = 0;
  carried_.clear();
  for (const nlohmann::json& state : states)
    for (const nlohmann::json& part : state.at("carry")) carried_.push_back(part.get<Tokens>());
}

void BinPacker::Bin::add(Tokens document) {
  used += static_cast<int64_t>(document.size()) - 1;
  documents.push_back(std::move(document));
}

bool BinPacker::next_row(const RowView& row, const NextDocument& next) {
  const auto room_for = [&](int64_t size) {
    return std::find_if(bins_.begin(), bins_.end(),
                        [&](const Bin& bin) { return bin.used + size <= seq_len_; });
  };
  Tokens document;
  while (true) {
    const auto full = std::find_if(bins_.begin(), bins_.end(),
                                   [&](const Bin& bin) { return bin.used == seq_len_; });
    if (full != bins_.end()) {
      emit(static_cast<size_t>(full - bins_.begin()), row);
      return true;
    }
    if (!next(document)) {
      if (bins_.empty()) return false;
      emit(0, row);
      return true;
    }
    const int64_t size = static_cast<int64_t>(document.size()) - 1;
    if (size > seq_len_) {
      ++num_too_long_;
      continue;
    }
    if (const auto bin = room_for(size); bin != bins_.end()) {
      bin->add(std::move(document));
      continue;
    }
    const bool emitted = bins_.size() >= num_bins_;
    if (emitted) {
      const auto fullest = std::max_element(
          bins_.begin(), bins_.end(), [](const Bin& a, const Bin& b) { return a.used < b.used; });
      emit(static_cast<size_t>(fullest - bins_.begin()), row);
    }
    bins_.emplace_back().add(std::move(document));
    if (emitted) return true;
  }
}

void BinPacker::emit(size_t bin, const RowView& row) {
  size_t at = 0;
  for (const Tokens& document : bins_[bin].documents) {
    write_positions(document, 0, document.size() - 1, row, at);
    at += document.size() - 1;
  }
  bins_.erase(bins_.begin() + static_cast<std::ptrdiff_t>(bin));
  const auto padding = row.positions.subspan(at);
  std::iota(padding.begin(), padding.end(), 0);
  std::fill(row.input.begin() + static_cast<std::ptrdiff_t>(at), row.input.end(), 0);
  std::fill(row.labels.begin() + static_cast<std::ptrdiff_t>(at), row.labels.end(), kIgnoreLabel);
}

nlohmann::json BinPacker::state() const {
  nlohmann::json bins = nlohmann::json::array();
  for (const Bin& bin : bins_) bins.push_back(bin.documents);
  return {{"bins", std::move(bins)}};
}

void BinPacker::restore(std::span<const nlohmann::json> states) {
  bins_.clear();
  for (const nlohmann::json& state : states)
    for (const nlohmann::json& saved : state.at("bins")) {
      Bin bin;
      for (const auto& document : saved) bin.add(document.get<Tokens>());
      if (bin.used > seq_len_)
        throw Error("loader state: an open row holds {} tokens, more than training.seq_len = {}",
                    bin.used, seq_len_);
      bins_.push_back(std::move(bin));
    }
}

}  // namespace rhea::data
