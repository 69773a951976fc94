// Reading ahead, tokenising and packing.
#include "rhea/components/data/packed_rows.h"

#include <nlohmann/json.hpp>

#include "rhea/base/error.h"

namespace rhea::data {
namespace {

// Documents per worker that are read before they are tokenised together.
constexpr int kDocumentsAhead = 8;

std::variant<ConcatPacker, BinPacker> make_packer(const DataLoaderOptions& options) {
  if (options.packing == Packing::concat) return ConcatPacker();
  // Greedy is first fit with one open row: a document that has no room closes it.
  return BinPacker(options.packing == Packing::greedy ? 1 : options.num_packing_bins,
                   options.seq_len);
}

DocumentStream::Cursor read_cursor(const nlohmann::json& state) {
  DocumentStream::Cursor cursor{state.at("epoch").get<int64_t>(),
                                state.at("position").get<int64_t>()};
  cursor.first = state.at("first").get<int64_t>();
  bool good = cursor.epoch >= 0 && cursor.position >= 0 && cursor.first >= 0;
  for (const auto& segment : state.at("segments")) {
    cursor.segments.push_back({segment.at(0).get<int64_t>(), segment.at(1).get<int64_t>()});
    good = good && cursor.segments.back().begin >= 0 &&
           cursor.segments.back().begin <= cursor.segments.back().end;
  }
  if (!good)
    throw Error("loader state: epoch {}, position {} and the documents left to read make no sense",
                cursor.epoch, cursor.position);
  return cursor;
}

}  // namespace

PackedRows::PackedRows(DocumentStream documents,
                       std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                       const DataLoaderOptions& options)
    : documents_(std::move(documents)),
      tokenizer_(std::move(tokenizer)),
      dp_rank_(static_cast<size_t>(options.dp_rank)),
      dp_size_(static_cast<size_t>(options.dp_size)),
      packer_(make_packer(options)) {
  // Training wants to know where documents begin and end: both marks, where the tokenizer has them.
  if (tokenizer_->bos_id()) encode_options_.add_bos = true;
  if (tokenizer_->eos_id()) encode_options_.add_eos = true;
  encode_options_.special_tokens_in_text = options.special_tokens_in_text;
  if (options.num_workers > 1) pool_.emplace(options.num_workers);
}

bool PackedRows::next_row(const RowView& row) {
  const bool filled = std::visit(
      [&](auto& packer) {
        return packer.next_row(row, [this](Tokens& tokens) { return next_document(tokens); });
      },
      packer_);
  if (const auto* bins = std::get_if<BinPacker>(&packer_))
    stats_.num_too_long = bins->num_too_long();
  return filled;
}

bool PackedRows::next_document(Tokens& tokens) {
  while (true) {
    if (ahead_.empty()) read_ahead();
    if (ahead_.empty()) return false;
    Encoded document = std::move(ahead_.front());
    ahead_.pop_front();
    if (document.failure) std::rethrow_exception(document.failure);
    cursor_ = document.cursor;
    stats_.num_empty += document.num_empty;
    stats_.num_bad_rows += document.num_bad_rows;
    // A single token has nothing to predict.
    if (document.tokens.size() < 2) {
      ++stats_.num_empty;
      continue;
    }
    ++stats_.num_documents;
    tokens = std::move(document.tokens);
    return true;
  }
}

void PackedRows::read_ahead() {
  const int count = pool_ ? kDocumentsAhead * pool_->num_threads() : 1;
  while (static_cast<int>(ahead_.size()) < count) {
    Encoded document;
    const int64_t empty_before = documents_.num_empty();
    const int64_t bad_before = documents_.num_bad_rows();
    bool found = true;
    try {
      found = documents_.next(document.text);
    } catch (...) {
      document.failure = std::current_exception();
    }
    document.cursor = documents_.cursor();
    document.num_empty = documents_.num_empty() - empty_before;
    document.num_bad_rows = documents_.num_bad_rows() - bad_before;
    if (!found) {  // rows behind the last document count too
      stats_.num_empty += document.num_empty;
      stats_.num_bad_rows += document.num_bad_rows;
      break;
    }
    const bool failed = document.failure != nullptr;
    ahead_.push_back(std::move(document));
    if (failed) break;
  }
  if (pool_) {
    pool_->parallel_for(static_cast<int64_t>(ahead_.size()),
                        [this](int64_t begin, int64_t end, int) {
                          for (int64_t i = begin; i < end; ++i)
                            encode(ahead_[static_cast<size_t>(i)]);
                        });
  } else {
    for (Encoded& document : ahead_) encode(document);
  }
}

void PackedRows::encode(Encoded& document) const {
  if (document.failure) return;
  document.tokens = tokenizer_->encode(document.text, encode_options_);
  document.text = {};
}

Snapshot PackedRows::snapshot() const {
  Snapshot packed = std::visit([](const auto& packer) { return packer.snapshot(); }, packer_);
  return [packed = std::move(packed), cursor = cursor_] {
    nlohmann::json state = packed();
    state["epoch"] = cursor.epoch;
    state["position"] = cursor.position;
    state["first"] = cursor.first;
    state["segments"] = nlohmann::json::array();
    for (const auto& segment : cursor.segments)
      state["segments"].push_back({segment.begin, segment.end});
    return state;
  };
}

void PackedRows::restore(std::span<const nlohmann::json> ranks) {
  ahead_.clear();
  std::vector<DocumentStream::Cursor> cursors;
  std::vector<nlohmann::json> carried;  // by this rank
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    cursors.push_back(read_cursor(ranks[rank]));
    if (rank % dp_size_ == dp_rank_) carried.push_back(ranks[rank]);
  }
  cursor_ = ranks.size() == dp_size_ ? cursors[dp_rank_] : documents_.redistribute(cursors);
  documents_.restore(cursor_);
  std::visit([&](auto& packer) { packer.restore(carried); }, packer_);
}

}  // namespace rhea::data
