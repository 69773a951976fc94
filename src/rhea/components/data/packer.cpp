// The packings.
#include "rhea/components/data/packer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "rhea/base/error.h"
#include "rhea/components/data/numbered_rows.h"

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
    if (begin_ + 1 >= document_->size()) {
      begin_ = 0;
      if (!carried_.empty()) {
        document_ = std::move(carried_.front());
        carried_.pop_front();
      } else {
        Tokens document;
        const bool found = next(document);
        document_ = std::make_shared<Tokens>(found ? std::move(document) : Tokens());
        if (!found) return false;
      }
    }
    const size_t count = std::min(row.input.size() - filled, document_->size() - 1 - begin_);
    write_positions(*document_, begin_, count, row, filled);
    begin_ += count;
    filled += count;
  }
  return true;
}

Snapshot ConcatPacker::snapshot() const {
  return [document = document_, begin = begin_, carried = carried_] {
    nlohmann::json carry = nlohmann::json::array();
    if (begin + 1 < document->size())
      carry.push_back(
          Tokens(document->begin() + static_cast<std::ptrdiff_t>(begin), document->end()));
    for (const SharedTokens& part : carried) carry.push_back(*part);
    return nlohmann::json{{"carry", std::move(carry)}};
  };
}

void ConcatPacker::restore(std::span<const nlohmann::json> states) {
  document_ = std::make_shared<Tokens>();
  begin_ = 0;
  carried_.clear();
  for (const nlohmann::json& state : states)
    for (const nlohmann::json& part : state.at("carry")) {
      const auto tokens = std::make_shared<Tokens>(part.get<Tokens>());
      if (tokens->size() >= 2) carried_.push_back(tokens);
    }
}

void BinPacker::Bin::add(SharedTokens document) {
  used += static_cast<int64_t>(document->size()) - 1;
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
      bin->add(std::make_shared<Tokens>(std::move(document)));
      continue;
    }
    const bool emitted = bins_.size() >= num_bins_;
    if (emitted) {
      const auto fullest = std::max_element(
          bins_.begin(), bins_.end(), [](const Bin& a, const Bin& b) { return a.used < b.used; });
      emit(static_cast<size_t>(fullest - bins_.begin()), row);
    }
    bins_.emplace_back().add(std::make_shared<Tokens>(std::move(document)));
    if (emitted) return true;
  }
}

void BinPacker::emit(size_t bin, const RowView& row) {
  size_t at = 0;
  for (const SharedTokens& document : bins_[bin].documents) {
    write_positions(*document, 0, document->size() - 1, row, at);
    at += document->size() - 1;
  }
  bins_.erase(bins_.begin() + static_cast<std::ptrdiff_t>(bin));
  const auto padding = row.positions.subspan(at);
  std::iota(padding.begin(), padding.end(), 0);
  std::fill(row.input.begin() + static_cast<std::ptrdiff_t>(at), row.input.end(), 0);
  std::fill(row.labels.begin() + static_cast<std::ptrdiff_t>(at), row.labels.end(), kIgnoreLabel);
  std::ranges::fill(row.is_token.subspan(at), 0);
}

Snapshot BinPacker::snapshot() const {
  return [bins = bins_] {
    nlohmann::json rows = nlohmann::json::array();
    for (const Bin& bin : bins) {
      nlohmann::json& row = rows.emplace_back(nlohmann::json::array());
      for (const SharedTokens& document : bin.documents) row.push_back(*document);
    }
    return nlohmann::json{{"bins", std::move(rows)}};
  };
}

void BinPacker::restore(std::span<const nlohmann::json> states) {
  bins_.clear();
  for (const nlohmann::json& state : states)
    for (const nlohmann::json& saved : state.at("bins")) {
      Bin bin;
      for (const auto& document : saved) bin.add(std::make_shared<Tokens>(document.get<Tokens>()));
      if (bin.used > seq_len_)
        throw Error("loader state: an open row holds {} tokens, more than training.seq_len = {}",
                    bin.used, seq_len_);
      bins_.push_back(std::move(bin));
    }
}

}  // namespace rhea::data
