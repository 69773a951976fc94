#include "rhea/ops/factors.h"

#include <algorithm>

namespace rhea::ops {
namespace {

// Blocks of a row-major tensor that lie together when `dim` is cut.
struct Rows {
  int64_t outer = 1, inner = 1;
};
Rows rows_of(const ir::Shape& shape, size_t dim) {
  Rows rows;
  for (size_t d = 0; d < shape.size(); ++d)
    (d < dim ? rows.outer : rows.inner) *= d == dim ? 1 : shape[d];
  return rows;
}

}  // namespace

Factors parse_factors(const std::string& text) {
  Factors factors;
  std::vector<std::string>* side = &factors.in;
  side->emplace_back();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',') {
      side->emplace_back();
    } else if (text[i] == '-') {
      side = &factors.out;
      side->emplace_back();
      ++i;
    } else if (text[i] == '!') {
      factors.whole.insert(text[++i]);
      side->back() += text[i];
    } else {
      side->back() += text[i];
    }
  }
  factors.whole.insert('1');
  return factors;
}

bool fits(const Factors& factors, std::span<const ir::Type> in, std::span<const ir::Type> out) {
  const auto same = [](const std::vector<std::string>& dims, std::span<const ir::Type> types) {
    return std::ranges::equal(dims, types, {}, &std::string::size,
                              [](const ir::Type& type) { return type.shape.size(); });
  };
  return (in.empty() || same(factors.in, in)) && same(factors.out, out);
}

Tensor cut(const Tensor& x, const ir::Shape& shape, size_t dim, int64_t begin, int64_t end) {
  const Rows rows = rows_of(shape, dim);
  Tensor part;
  part.reserve(static_cast<size_t>(rows.outer * (end - begin) * rows.inner));
  for (int64_t o = 0; o < rows.outer; ++o) {
    const auto row = x.begin() + (o * shape[dim] + begin) * rows.inner;
    part.insert(part.end(), row, row + (end - begin) * rows.inner);
  }
  return part;
}

void paste(const Tensor& part, const ir::Shape& shape, size_t dim, int64_t begin, int64_t end,
           Tensor& into) {
  const Rows rows = rows_of(shape, dim);
  const int64_t count = (end - begin) * rows.inner;
  for (int64_t o = 0; o < rows.outer; ++o)
    std::copy_n(part.begin() + o * count, count,
                into.begin() + (o * shape[dim] + begin) * rows.inner);
}

ir::Attrs make_local(const ir::Attrs& attrs, const ir::Shape& whole, const ir::Shape& local) {
  ir::Attrs made = attrs;
  if (attrs.has("rows")) made.set("rows", local[0]);
  if (attrs.has("shape")) made.set("shape", local);
  if (attrs.has("limit")) {
    std::vector<int64_t> limit = attrs.list("limit");
    for (size_t d = 0; d < local.size(); ++d) limit[d] += local[d] - whole[d];
    made.set("limit", limit);
  }
  return made;
}

}  // namespace rhea::ops
