#include "rhea/nn/rope_buffers.h"

#include <algorithm>

#include "rhea/nn/trace.h"

namespace rhea::nn {

RopeBuffers::RopeBuffers(std::vector<RopeSpec> specs, int64_t num_positions)
    : num_positions_(num_positions) {
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto size = static_cast<size_t>(num_positions * specs[i].rotary_dim / 2);
    tables_.push_back({std::move(specs[i]), Trace::rope_input(i, "cos"),
                       Trace::rope_input(i, "sin"), AlignedVector<float>(size),
                       AlignedVector<float>(size)});
  }
}

const float* RopeBuffers::find(std::string_view input) const {
  for (const Table& table : tables_) {
    if (input == table.cos_name) return table.cos_SP.data();
    if (input == table.sin_name) return table.sin_SP.data();
  }
  return nullptr;
}

namespace {

// The shortest batch that has the tables of one of this length.
int64_t representative(const RopeSpec& spec, int64_t length) {
  const auto original = static_cast<int64_t>(spec.original_max);
  if (spec.scaling == RopeSpec::Scaling::dynamic) return std::max(length, original);
  if (spec.scaling == RopeSpec::Scaling::longrope) return length > original ? original + 1 : 1;
  return 0;
}

}  // namespace

bool RopeBuffers::fill(int64_t length) {
  bool exchanged = false;
  for (Table& table : tables_) {
    const int64_t wanted = representative(table.spec, length);
    if (table.length == wanted) continue;
    exchanged |= table.length > 0 && table.spec.scaling == RopeSpec::Scaling::longrope;
    fill_tables(table.spec, num_positions_, wanted, table.cos_SP.data(), table.sin_SP.data());
    table.length = wanted;
  }
  return exchanged;
}

bool RopeBuffers::depends_on_length() const {
  return std::ranges::any_of(tables_,
                             [](const Table& table) { return table.spec.depends_on_length(); });
}

}  // namespace rhea::nn
