// Memory of the rotary tables that a traced graph reads.
#pragma once
#include <string_view>
#include <vector>

#include "rhea/base/aligned.h"
#include "rhea/nn/rope_tables.h"

namespace rhea::nn {

class RopeBuffers {
 public:
  RopeBuffers() = default;
  // Tables of `num_positions` rows for the specs of a trace, in their order.
  RopeBuffers(std::vector<RopeSpec> specs, int64_t num_positions);

  // Memory of the graph input of that name (Trace::rope_input); null where it is no table.
  const float* find(std::string_view input) const;
  // Makes the tables those of a batch whose longest position is length-1. Tables that do not depend
  // on it are filled by the first call only. True where a table was exchanged for another (longrope
  // at its border), so that keys which were rotated by the one before are of no use.
  bool fill(int64_t length);
  // Whether a call of fill() for another length changes anything.
  bool depends_on_length() const;

 private:
  struct Table {
    RopeSpec spec;
    std::string cos_name, sin_name;
    AlignedVector<float> cos_SP, sin_SP;
    int64_t length = -1;  // that it is filled for; 0: any
  };
  int64_t num_positions_ = 0;
  std::vector<Table> tables_;
};

}  // namespace rhea::nn
