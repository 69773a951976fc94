// Documents in training order.
#include "rhea/components/data/document_stream.h"

#include <algorithm>
#include <limits>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/components/data/epoch_order.h"

namespace rhea::data {

DocumentStream::DocumentStream(std::unique_ptr<DocumentSource> source, Options options)
    : source_(std::move(source)), options_(std::move(options)) {
  const auto count = source_->num_documents();
  if (count && *count < options_.dp_size)
    throw Error("dataset {} has {} documents ({}), fewer than the {} data-parallel ranks",
                options_.name, *count, source_->description(), options_.dp_size);
}

// Contiguous shares whose sizes differ by one at most.
DocumentStream::Segment DocumentStream::usual_share(int64_t rank, int64_t num_ranks) const {
  const int64_t count = *source_->num_documents();
  return {count * rank / num_ranks, count * (rank + 1) / num_ranks};
}

int64_t DocumentStream::document_number(const Cursor& cursor) const {
  const auto count = source_->num_documents();
  // A stream is read from its begin in every epoch; ranks take turns.
  if (!count) return cursor.first + cursor.position * options_.dp_size + options_.dp_rank;
  const Segment usual = usual_share(options_.dp_rank, options_.dp_size);
  const std::span<const Segment> share =
      cursor.segments.empty() ? std::span(&usual, 1) : std::span(cursor.segments);
  int64_t skip = cursor.position;
  for (const Segment& segment : share) {
    const int64_t index = segment.begin + skip;
    skip -= segment.end - segment.begin;
    if (skip >= 0) continue;
    if (cursor.epoch == 0 && !options_.shuffle) return index;
    return permute(index, *count, options_.seed, cursor.epoch);
  }
  return -1;
}

void DocumentStream::restore(Cursor cursor) {
  cursor_ = std::move(cursor);
  ended_ = false;
  // The documents before were seen by the process that saved it.
  found_in_epoch_ = cursor_.position > 0 || !cursor_.segments.empty() || cursor_.first > 0;
}

DocumentStream::Cursor DocumentStream::redistribute(std::span<const Cursor> ranks) const {
  const auto old_size = static_cast<int64_t>(ranks.size());
  Cursor result;
  result.epoch = std::min_element(ranks.begin(), ranks.end(), [](const Cursor& a, const Cursor& b) {
                   return a.epoch < b.epoch;
                 })->epoch;
  std::vector<Segment> left;  // of that epoch, in the order of the ranks
  int64_t first = std::numeric_limits<int64_t>::max();
  for (int64_t rank = 0; rank < old_size; ++rank) {
    const Cursor& cursor = ranks[static_cast<size_t>(rank)];
    if (cursor.epoch != result.epoch) continue;
    first = std::min(first, cursor.first + cursor.position * old_size + rank);
    if (!source_->num_documents()) continue;
    int64_t skip = cursor.position;
    for (const Segment& segment : cursor.segments.empty()
                                      ? std::vector<Segment>{usual_share(rank, old_size)}
                                      : cursor.segments) {
      const int64_t length = segment.end - segment.begin;
      if (skip < length) left.push_back({segment.begin + skip, segment.end});
      skip = std::max<int64_t>(skip - length, 0);
    }
  }
  if (!source_->num_documents()) {
    result.first = first;
    return result;
  }
  int64_t total = 0;
  for (const Segment& segment : left) total += segment.end - segment.begin;
  const int64_t begin = total * options_.dp_rank / options_.dp_size;
  const int64_t end = total * (options_.dp_rank + 1) / options_.dp_size;
  int64_t at = 0;  // of the segment, in the list of all that is left
  for (const Segment& segment : left) {
    const int64_t from = std::max(begin, at);
    const int64_t to = std::min(end, at + segment.end - segment.begin);
    if (from < to) result.segments.push_back({segment.begin + from - at, segment.begin + to - at});
    at += segment.end - segment.begin;
  }
  // Nothing left for this rank: a share of no documents, which is not the usual one.
  if (result.segments.empty()) result.segments.push_back({0, 0});
  return result;
}

bool DocumentStream::end_epoch() {
  if (epoch_bad_rows_ > 0)
    log::warning("data", "Dataset {}: {} bad rows were skipped in epoch {}", options_.name,
                 epoch_bad_rows_, cursor_.epoch);
  epoch_bad_rows_ = 0;
  if (!options_.infinite) {
    log::warning("data", "Dataset {} has run out of data", options_.name);
    ended_ = true;
    return false;
  }
  if (!found_in_epoch_ && cursor_.position > 0)
    throw Error("dataset {} ({}): no document with text in a whole epoch of {} rows", options_.name,
                source_->description(), cursor_.position);
  if (!found_in_epoch_)
    throw Error("dataset {} ({}) has no rows", options_.name, source_->description());
  found_in_epoch_ = false;
  cursor_ = {cursor_.epoch + 1, 0};
  log::warning("data", "Dataset {} is being re-looped (epoch {})", options_.name, cursor_.epoch);
  return true;
}

bool DocumentStream::next(std::string& text) {
  Document document;
  while (!ended_) {
    const int64_t number = document_number(cursor_);
    if (number < 0 || !source_->read(number, document)) {
      if (!end_epoch()) return false;
      continue;
    }
    ++cursor_.position;
    if (!document.problem.empty()) {
      if (options_.on_bad_row == OnBadRow::stop)
        throw Error("{} (dataloader.on_bad_row = skip would leave such rows out)",
                    document.problem);
      log::warning("data", "skipped: {}", document.problem);
      ++num_bad_rows_;
      ++epoch_bad_rows_;
      continue;
    }
    if (document.text.empty()) {
      ++num_empty_;
      continue;
    }
    found_in_epoch_ = true;
    text = std::move(document.text);
    return true;
  }
  return false;
}

}  // namespace rhea::data
