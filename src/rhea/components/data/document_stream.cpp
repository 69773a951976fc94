// Documents in training order.
#include "rhea/components/data/document_stream.h"

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

int64_t DocumentStream::document_number(Cursor cursor) const {
  const auto count = source_->num_documents();
  // A stream is read from its begin in every epoch; ranks take turns.
  if (!count) return cursor.position * options_.dp_size + options_.dp_rank;
  // Contiguous shares whose sizes differ by one at most.
  const int64_t begin = *count * options_.dp_rank / options_.dp_size;
  const int64_t end = *count * (options_.dp_rank + 1) / options_.dp_size;
  const int64_t index = begin + cursor.position;
  if (index >= end) return -1;
  if (cursor.epoch == 0 && !options_.shuffle) return index;
  return permute(index, *count, options_.seed, cursor.epoch);
}

void DocumentStream::restore(Cursor cursor) {
  cursor_ = cursor;
  ended_ = false;
  // The rows before the position were seen by the process that saved it.
  found_in_epoch_ = cursor.position > 0;
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
