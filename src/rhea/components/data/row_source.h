// Where rows of seq_len tokens come from: packed documents, ready rows of a file, or a mixture of
// such sources.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "rhea/components/data/data_loader.h"

namespace rhea::data {

// One row of a batch, to be filled.
struct RowView {
  std::span<int32_t> input, labels, positions;
};

class RowSource {
 public:
  virtual ~RowSource() = default;
  // False when there is no further row.
  virtual bool next_row(const RowView& row) = 0;
  // What comes next, and back to it. restore() throws Error for a state that does not fit.
  virtual nlohmann::json state() const = 0;
  virtual void restore(const nlohmann::json& state) = 0;
  virtual DataStats stats() const { return {}; }
  virtual std::string description() const = 0;
};

}  // namespace rhea::data
