#include "rhea/ops/factors.h"

#include <algorithm>
#include <variant>

namespace rhea::ops {
namespace {

// Blocks of a row-major tensor that lie together when `dim` is cut.
struct Runs {
  int64_t outer = 1, inner = 1;
};
Runs runs_of(const ir::Shape& shape, size_t dim) {
  Runs runs;
  for (size_t d = 0; d < shape.size(); ++d)
    (d < dim ? runs.outer : runs.inner) *= d == dim ? 1 : shape[d];
  return runs;
}

ir::Attrs make_local(const ir::Attrs& attrs, const ir::Shape& whole, const ir::Shape& local) {
  ir::Attrs made = attrs;
  const auto says = [&](std::string_view name, const ir::Attr& value) {
    const ir::Attr* attr = attrs.find(name);
    return attr != nullptr && *attr == value;
  };
  if (!whole.empty() && says("rows", whole[0])) made.set("rows", local[0]);
  if (says("shape", whole)) made.set("shape", local);
  const ir::Attr* limits = attrs.find("limit");
  const auto* limit = limits == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(limits);
  if (limit != nullptr && limit->size() == whole.size()) {
    std::vector<int64_t> moved = *limit;
    for (size_t d = 0; d < local.size(); ++d) moved[d] += local[d] - whole[d];
    made.set("limit", moved);
  }
  return made;
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
  const Runs runs = runs_of(shape, dim);
  Tensor part;
  part.reserve(static_cast<size_t>(runs.outer * (end - begin) * runs.inner));
  for (int64_t o = 0; o < runs.outer; ++o) {
    const auto run = x.begin() + (o * shape[dim] + begin) * runs.inner;
    part.insert(part.end(), run, run + (end - begin) * runs.inner);
  }
  return part;
}

void paste(const Tensor& part, const ir::Shape& shape, size_t dim, int64_t begin, int64_t end,
           Tensor& into) {
  const Runs runs = runs_of(shape, dim);
  const int64_t count = (end - begin) * runs.inner;
  for (int64_t o = 0; o < runs.outer; ++o)
    std::copy_n(part.begin() + o * count, count,
                into.begin() + (o * shape[dim] + begin) * runs.inner);
}

NodePart part_along(const ir::OpInstance& op, const Factors& factors, char letter,
                    const std::function<DimRange(int64_t size)>& range) {
  NodePart part{{op.in.begin(), op.in.end()}, {op.out.begin(), op.out.end()}, *op.attrs};
  const auto shrink = [&](const std::vector<std::string>& letters, std::vector<ir::Type>& types) {
    for (size_t i = 0; i < types.size(); ++i)
      for (size_t d = 0; d < letters[i].size(); ++d) {
        if (letters[i][d] != letter) continue;
        const auto [begin, end] = range(types[i].shape[d]);
        types[i].shape[d] = end - begin;
      }
  };
  shrink(factors.in, part.in);
  shrink(factors.out, part.out);
  if (!part.out.empty()) part.attrs = make_local(*op.attrs, op.out[0].shape, part.out[0].shape);
  return part;
}

}  // namespace rhea::ops
