// Where rows of seq_len tokens come from: packed documents, ready rows of a file, or a mixture of
// such sources.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "rhea/components/data/data_loader.h"
#include "rhea/components/data/numbered_rows.h"

namespace rhea::data {

// A state of the past, written out when somebody asks for it. May be called by another thread.
using Snapshot = std::function<nlohmann::json()>;

class RowSource {
 public:
  virtual ~RowSource() = default;
  // False when there is no further row.
  virtual bool next_row(const RowView& row) = 0;
  // What comes next on this rank, as of now; cheap to make, whatever the size of what it stands
  // for.
  virtual Snapshot snapshot() const = 0;
  // Back to the states of all ranks of a run, in their order. As many as there are ranks now:
  // exactly what this rank would have had next. Otherwise what is left is spread over the ranks
  // anew: nothing is left out. Throws Error for a state that does not fit.
  virtual void restore(std::span<const nlohmann::json> ranks) = 0;
  virtual DataStats stats() const { return {}; }
  virtual std::string description() const = 0;
};

}  // namespace rhea::data
