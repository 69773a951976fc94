// The shard and cost columns, for every row, by doing what they promise: operands cut in two along
// a factor give two results that join (or, where the factor is reduced, add up) to the whole one,
// and two halves of the flops.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "rhea/ops/contract_case.h"

namespace rhea::ops {
namespace {

using ir::num_elements;
using ir::Type;
using Dims = std::vector<std::string>;  // per tensor, one letter a dim

struct Factors {
  Dims in, out;
  std::set<char> whole;  // must not be split
};

Factors parse(const std::string& text) {
  Factors factors;
  Dims* side = &factors.in;
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

// Elements [begin, end) of dim `dim`.
Tensor cut(const Tensor& x, const Shape& shape, size_t dim, int64_t begin, int64_t end) {
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < shape.size(); ++d) (d < dim ? outer : inner) *= d == dim ? 1 : shape[d];
  Tensor part;
  for (int64_t o = 0; o < outer; ++o) {
    const auto row = x.begin() + (o * shape[dim] + begin) * inner;
    part.insert(part.end(), row, row + (end - begin) * inner);
  }
  return part;
}

// One half of a case along `letter`; attributes that repeat the result's shape become local.
struct Half {
  std::vector<Type> in, out;
  ir::Attrs attrs;
  std::vector<Tensor> results;
  double flops = 0;
};

// Attributes that say the shape of the result (ops of ops/shape, the gradient of embedding) become
// those of the half.
ir::Attrs make_local(const ir::Attrs& attrs, const Shape& whole, const Shape& local) {
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

Half run_half(const ContractCase& c, const Factors& factors, char letter, bool second) {
  Half half{c.in, c.out, c.attrs, {}, 0};
  std::vector<Tensor> inputs = c.inputs;
  const auto range = [&](int64_t size) {
    return second ? std::pair(size / 2, size) : std::pair(int64_t{0}, size / 2);
  };
  for (size_t i = 0; i < c.in.size(); ++i) {
    for (size_t d = 0; d < factors.in[i].size(); ++d) {
      if (factors.in[i][d] != letter) continue;
      const auto [begin, end] = range(half.in[i].shape[d]);
      inputs[i] = cut(inputs[i], half.in[i].shape, d, begin, end);
      half.in[i].shape[d] = end - begin;
    }
  }
  for (size_t r = 0; r < c.out.size(); ++r) {
    for (size_t d = 0; d < factors.out[r].size(); ++d) {
      if (factors.out[r][d] != letter) continue;
      const auto [begin, end] = range(half.out[r].shape[d]);
      half.out[r].shape[d] = end - begin;
    }
  }
  if (!half.out.empty()) half.attrs = make_local(c.attrs, c.out[0].shape, half.out[0].shape);
  EXPECT_EQ(c.op->infer(half.in, half.attrs), half.out) << "types of a half";
  if (testing::Test::HasFailure()) return half;
  const ir::OpInstance instance{c.op, half.in, half.out, &half.attrs};
  half.results = evaluate_op(instance, inputs);
  half.flops = c.op->cost(instance).flops;
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

TEST_P(Contract, HalvesAlongAFactorMakeTheWhole) {
  if (&op() == &ir::kInput) GTEST_SKIP() << "an input is no computation";
  for (const ir::Sample& sample : samples()) {
    // A cluster whose body broadcasts names whole shapes in text, which a half cannot change.
    if (sample.attrs.has("body") && sample.attrs.str("body").find("shape=") != std::string::npos)
      continue;
    const auto c = make_case(op(), sample);
    const std::string shard = op().shard(c->instance());
    const Factors factors = parse(shard);
    ASSERT_EQ(factors.in.size(), std::max<size_t>(1, c->in.size()));
    std::map<char, int64_t> letters;  // with the smallest size
    for (size_t i = 0; i < c->in.size(); ++i) {
      for (size_t d = 0; d < factors.in[i].size(); ++d) {
        const int64_t size = c->in[i].shape[d];
        const auto at = letters.emplace(factors.in[i][d], size).first;
        at->second = std::min(at->second, size);
      }
    }
    for (size_t r = 0; r < c->out.size(); ++r) {
      for (size_t d = 0; d < factors.out[r].size(); ++d)
        letters.emplace(factors.out[r][d], c->out[r].shape[d]);
    }
    for (const auto& [letter, size] : letters) {
      if (factors.whole.contains(letter) || size < 2) continue;
      SCOPED_TRACE(fmt::format("sample {}: {} cut along {}", sample.name, shard, letter));
      const Half a = run_half(*c, factors, letter, false);
      const Half b = run_half(*c, factors, letter, true);
      if (HasFailure()) return;
      for (size_t r = 0; r < c->out.size(); ++r) {
        const Tensor joined = join(a, b, r, factors.out[r], letter);
        const Tensor& whole = c->expected[r];
        ASSERT_EQ(joined.size(), whole.size());
        double largest = 1e-30;
        for (const double x : whole)
          largest = std::isfinite(x) ? std::max(largest, std::abs(x)) : largest;
        for (size_t i = 0; i < whole.size(); ++i) {
          if (joined[i] == whole[i] || (std::isnan(joined[i]) && std::isnan(whole[i]))) continue;
          ASSERT_NEAR(joined[i], whole[i], 1e-10 * largest) << "result " << r << " element " << i;
        }
      }
      const double flops = op().cost(c->instance()).flops;
      // Work on what both halves hold whole is done twice.
      EXPECT_GE(a.flops + b.flops, 0.75 * flops) << "flops of the halves";
      EXPECT_LE(a.flops + b.flops, 1.75 * flops) << "flops of the halves";
    }
  }
}

// Rows that only move or name data.
constexpr std::string_view kMoves[] = {"input",
                                       "constant",
                                       "reshape",
                                       "transpose",
                                       "slice",
                                       "concatenate",
                                       "pad",
                                       "iota",
                                       "embedding",
                                       "broadcast_in_dim",
                                       "pack",
                                       "optimization_barrier",
                                       "dynamic_update_slice"};

TEST_P(Contract, CostIsThatOfTheSample) {
  if (&op() == &ir::kInput) GTEST_SKIP() << "an input is no computation";
  const bool moves = std::ranges::find(kMoves, op().name) != std::end(kMoves);
  for (const ir::Sample& sample : samples()) {
    SCOPED_TRACE(fmt::format("sample {}", sample.name));
    const auto c = make_case(op(), sample);
    const ir::Cost cost = op().cost(c->instance());
    double results = 0, elements = 0, all = 0;
    for (const Type& type : c->out) {
      results += static_cast<double>(byte_size(type));
      elements += static_cast<double>(num_elements(type.shape));
    }
    for (const Type& type : c->in) all += static_cast<double>(byte_size(type));
    all += results;
    bool empty = false;
    for (const Type& type : c->in) empty |= num_elements(type.shape) == 0;
    EXPECT_TRUE(std::isfinite(cost.flops) && cost.flops >= 0);
    EXPECT_LE(cost.bytes, 2 * all) << "more than each operand and result twice";
    if (moves) {
      EXPECT_EQ(cost.flops, 0);
      continue;
    }
    if (elements == 0 || empty) continue;
    EXPECT_GE(cost.bytes, results) << "less than the results";
    EXPECT_GT(cost.flops, 0);
  }
}

}  // namespace
}  // namespace rhea::ops
