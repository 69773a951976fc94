// Documents of a data set in training order: epochs, shuffles, the share of one data-parallel rank,
// bad and empty rows.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rhea/components/data/data_loader.h"
#include "rhea/components/data/document_source.h"

namespace rhea::data {

class DocumentStream {
 public:
  // Places [begin, end) in the order of an epoch.
  struct Segment {
    int64_t begin = 0;
    int64_t end = 0;
  };
  // Next document of this rank: `position` counts within the rank's share of `epoch`. The share is
  // the usual one (a contiguous part; of a stream every dp_size-th document) unless a run with
  // another number of ranks began the epoch.
  struct Cursor {
    int64_t epoch = 0;
    int64_t position = 0;
    std::vector<Segment> segments = {};  // not empty: the share
    int64_t first = 0;                   // of a stream: the document that rank 0 begins with
  };
  struct Options {
    std::string name;  // of the data set, for the log
    bool infinite = true;
    bool shuffle = false;
    uint64_t seed = 0;
    OnBadRow on_bad_row = OnBadRow::stop;
    int dp_rank = 0;
    int dp_size = 1;
  };

  // Throws Error when there are fewer documents than ranks.
  DocumentStream(std::unique_ptr<DocumentSource> source, Options options);

  // False when a finite set has run out. Throws Error "file:line: reason" for a bad row with
  // on_bad_row = stop, and when a whole epoch holds no document.
  bool next(std::string& text);

  const Cursor& cursor() const { return cursor_; }
  void restore(Cursor cursor);
  // Where this rank goes on when all ranks of a run, whose cursors these are, stopped: what they
  // left of the epoch of the slowest is split anew. Documents that faster ranks read in a later
  // epoch come again there.
  Cursor redistribute(std::span<const Cursor> ranks) const;
  int64_t num_empty() const { return num_empty_; }
  int64_t num_bad_rows() const { return num_bad_rows_; }
  std::string description() const {
    return options_.name + " dataset from " + source_->description();
  }

 private:
  // Number of the document at a position of the rank's share; -1 past its end.
  int64_t document_number(const Cursor& cursor) const;
  Segment usual_share(int64_t rank, int64_t num_ranks) const;
  bool end_epoch();

  std::unique_ptr<DocumentSource> source_;
  Options options_;
  Cursor cursor_;
  int64_t num_empty_ = 0;
  int64_t num_bad_rows_ = 0;
  int64_t epoch_bad_rows_ = 0;
  bool found_in_epoch_ = false;
  bool ended_ = false;
};

}  // namespace rhea::data
