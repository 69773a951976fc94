// The shard column, by doing what it promises: operands cut in two along
// a factor give two results that join (or, where the factor is reduced, add up) to the whole one,
// and two halves of the flops.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "rhea/ops/contract/checks.h"
#include "rhea/ops/cost.h"
#include "rhea/ops/factors.h"

namespace rhea::ops {
namespace {

using ir::num_elements;
using ir::Type;
using Dims = std::vector<std::string>;  // per tensor, one letter a dim

// One half of a case along a letter.
struct Half : NodePart {
  std::vector<Tensor> results;
  double flops = 0;
};

// Empty where the types of the half are not what the letters say.
std::optional<Half> run_half(const ContractCase& c, const Factors& factors, char letter,
                             bool second, Findings& f) {
  const auto range = [&](int64_t size) {
    return second ? DimRange{size / 2, size} : DimRange{0, size / 2};
  };
  Half half{part_along(c.instance(), factors, letter, range), {}, 0};
  std::vector<Tensor> inputs = c.inputs;
  for (size_t i = 0; i < c.in.size(); ++i) {
    Shape shape = c.in[i].shape;
    for (size_t d = 0; d < factors.in[i].size(); ++d) {
      if (factors.in[i][d] != letter) continue;
      const auto [begin, end] = range(shape[d]);
      inputs[i] = cut(inputs[i], shape, d, begin, end);
      shape[d] = end - begin;
    }
  }
  const std::vector<Type> inferred = c.op->infer(half.in, half.attrs);
  if (!f.expect(inferred == half.out, "infer gives other types for a half than its letters say"))
    return {};
  const ir::OpInstance instance{c.op, half.in, half.out, &half.attrs};
  half.results = evaluate_op(instance, inputs);
  half.flops = cost_of(instance).flops;
  return half;
}

// The whole result from its halves.
Tensor join(const Half& a, const Half& b, size_t result, const std::string& letters, char letter) {
  const size_t dim = letters.find(letter);
  if (dim == std::string::npos) {
    Tensor sum = a.results[result];
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += b.results[result][i];
    return sum;
  }
  const Shape& left = a.out[result].shape;
  const Shape& right = b.out[result].shape;
  int64_t outer = 1;
  for (size_t d = 0; d < dim; ++d) outer *= left[d];
  if (outer == 0) return {};
  const auto from_a = num_elements(left) / outer, from_b = num_elements(right) / outer;
  Tensor joined;
  for (int64_t o = 0; o < outer; ++o) {
    joined.insert(joined.end(), a.results[result].begin() + o * from_a,
                  a.results[result].begin() + (o + 1) * from_a);
    joined.insert(joined.end(), b.results[result].begin() + o * from_b,
                  b.results[result].begin() + (o + 1) * from_b);
  }
  return joined;
}

// The letters that may be split, with the smallest size of their dims.
std::map<char, int64_t> letter_sizes(const ContractCase& c, const Factors& factors) {
  std::map<char, int64_t> letters;
  for (size_t i = 0; i < c.in.size(); ++i) {
    for (size_t d = 0; d < factors.in[i].size(); ++d) {
      const int64_t size = c.in[i].shape[d];
      const auto at = letters.emplace(factors.in[i][d], size).first;
      at->second = std::min(at->second, size);
    }
  }
  for (size_t r = 0; r < c.out.size(); ++r) {
    for (size_t d = 0; d < factors.out[r].size(); ++d)
      letters.emplace(factors.out[r][d], c.out[r].shape[d]);
  }
  for (const char whole : factors.whole) letters.erase(whole);
  return letters;
}

// False after the first failure.
bool check_letter(const ContractCase& c, const Factors& factors, char letter, Findings& f) {
  const auto a = run_half(c, factors, letter, false, f);
  const auto b = run_half(c, factors, letter, true, f);
  if (!a || !b) return false;
  for (size_t r = 0; r < c.out.size(); ++r) {
    const Tensor joined = join(*a, *b, r, factors.out[r], letter);
    const Tensor& whole = c.expected[r];
    if (!f.expect(joined.size() == whole.size(), "result {}: the halves have {} elements, not {}",
                  r, joined.size(), whole.size()))
      return false;
    const double allowed = 1e-10 * largest_of(whole, 1e-30);
    for (size_t i = 0; i < whole.size(); ++i) {
      if (joined[i] == whole[i] || (std::isnan(joined[i]) && std::isnan(whole[i]))) continue;
      if (!f.expect(std::abs(joined[i] - whole[i]) <= allowed,
                    "result {} element {}: the halves give {}, the whole {}", r, i, joined[i],
                    whole[i]))
        return false;
    }
  }
  // Work on what both halves hold whole is done twice.
  const double flops = cost_of(c.instance()).flops, halves = a->flops + b->flops;
  return f.expect(halves >= 0.75 * flops && halves <= 1.75 * flops,
                  "the halves cost {} flops, the whole {}", halves, flops);
}

}  // namespace

void check_halves(const OpDef& op, Findings& f) {
  if (!op.shard) return f.skip("has no sharding rule");
  for (const ir::Sample& sample : samples_of(op)) {
    // A cluster whose body broadcasts names whole shapes in text, which a half cannot change.
    if (sample.attrs.has("body") && sample.attrs.str("body").find("shape=") != std::string::npos)
      continue;
    const auto c = make_case(op, sample);
    const std::string shard = op.shard(c->instance());
    const Factors factors = parse_factors(shard);
    if (!f.expect(fits(factors, c->in, c->out),
                  "sample {}: shard '{}' is for operands or results of other ranks", sample.name,
                  shard))
      return;
    for (const auto& [letter, size] : letter_sizes(*c, factors)) {
      if (size < 2) continue;
      const Findings::Place place(
          f, fmt::format("sample {}: {} cut along {}", sample.name, shard, letter));
      if (!check_letter(*c, factors, letter, f)) return;
    }
  }
}

}  // namespace rhea::ops
