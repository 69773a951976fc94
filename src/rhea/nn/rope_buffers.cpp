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

void RopeBuffers::fill(int64_t length) {
  for (Table& table : tables_) {
    const int64_t wanted = table.spec.depends_on_length() ? length : 0;
    if (table.length == wanted) continue;
    fill_tables(table.spec, num_positions_, wanted, table.cos_SP.data(), table.sin_SP.data());
    table.length = wanted;
  }
}

bool RopeBuffers::depends_on_length() const {
  return std::ranges::any_of(tables_,
                             [](const Table& table) { return table.spec.depends_on_length(); });
}

}  // namespace rhea::nn
