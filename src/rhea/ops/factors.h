// The shard cell of a row read as letters, and cutting an op along one of them.
#pragma once
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "rhea/ir/graph.h"
#include "rhea/ops/evaluate.h"

namespace rhea::ops {

struct Factors {
  std::vector<std::string> in, out;  // per tensor, one letter a dim
  std::set<char> whole;              // must not be split
};
// "td,d->td" as ir::OpDef::shard writes it.
Factors parse_factors(const std::string& text);
// A letter for each dim of each tensor?
bool fits(const Factors& factors, std::span<const ir::Type> in, std::span<const ir::Type> out);

// Elements [begin, end) of dim `dim` of a row-major tensor.
Tensor cut(const Tensor& x, const ir::Shape& shape, size_t dim, int64_t begin, int64_t end);
// Writes `part` where cut() would have taken it from.
void paste(const Tensor& part, const ir::Shape& shape, size_t dim, int64_t begin, int64_t end,
           Tensor& into);

// What a part has of a dim.
struct DimRange {
  int64_t begin = 0, end = 0;
};
// Types and attributes of a part of a node. Only infer says whether there is such a part: an
// attribute of a row from outside may repeat a size.
struct NodePart {
  std::vector<ir::Type> in, out;
  ir::Attrs attrs;
};
// The part that has range(size) of every dim with that letter. Attributes that say the shape of
// the result (ops of ops/shape, the gradient of embedding) become those of the part.
NodePart part_along(const ir::OpInstance& op, const Factors& factors, char letter,
                    const std::function<DimRange(int64_t size)>& range);

}  // namespace rhea::ops
