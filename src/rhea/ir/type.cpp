// Sizes and text of types.
#include "rhea/ir/type.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "rhea/base/error.h"

namespace rhea::ir {

int64_t num_elements(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

int64_t byte_size(const Type& type) {
  if (type.layout == Layout::row_major) return num_elements(type.shape) * dtype_size(type.dtype);
  RHEA_CHECK(type.rank() == 2 || type.rank() == 3, "packed layouts have two or three dims, got {}",
             to_string(type));
  const bool nk = type.layout == Layout::panels_nk;
  const int64_t columns = type.shape.back(),
                rows = num_elements(type.shape) / std::max<int64_t>(1, columns);
  const int64_t free_dim = nk ? rows : columns, reduced = nk ? columns : rows;
  return round_up(free_dim, 64) * round_up(reduced, type.dtype == DType::f32 ? 16 : 32) *
         dtype_size(type.dtype);
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

std::string to_string(const Type& type) {
  constexpr const char* layouts[] = {"", "{panels_nk}", "{panels_kn}"};
  return fmt::format("{}{}{}", dtype_name(type.dtype), to_string(type.shape),
                     layouts[static_cast<int>(type.layout)]);
}

}  // namespace rhea::ir
