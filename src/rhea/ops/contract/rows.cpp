// The row as a whole: complete, types, sharding letters and cost of its samples, two definitions.
#include <algorithm>
#include <cmath>

#include "rhea/ops/contract/checks.h"
#include "rhea/ops/cost.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"
#include "rhea/ops/table.h"

namespace rhea::ops {
namespace {

using ir::num_elements;
using ir::Sample;
using ir::Type;

// "xx,x" for a matrix and a vector.
std::string dims_pattern(std::span<const Type> types) {
  std::string pattern;
  for (size_t i = 0; i < types.size(); ++i) {
    if (i > 0) pattern.push_back(',');
    pattern.append(types[i].shape.size(), 'x');
  }
  return pattern;
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

}  // namespace

void check_complete(const OpDef& op, Findings& f) {
  if (&op == &ir::kInput) return f.skip("an input is no computation");
  const bool in_tree = origin_of(op) == kInTree;
  const bool has_definition = op.reference || op.decompose;
  f.expect(static_cast<bool>(op.infer), "lacks infer");
  f.expect(has_definition,
           "lacks a definition in f64 to compare with: give a decomposition or a reference");
  f.expect(!samples_of(op).empty(), "lacks samples, on which everything else is checked");
  f.expect(find_op(op.name) == &op, "another row has this name");
  if (in_tree) {
    f.expect(static_cast<bool>(op.shard), "lacks shard");
    f.expect(static_cast<bool>(op.cost), "lacks cost");
  } else if (!op.shard) {
    f.note("lacks shard: every rank computes it whole");
  }
  if (op.cpu.empty() || (!in_tree && has_definition)) return;
  f.expect(op.cpu.back().isa == Isa::plain, "has no kernel for every CPU");
  f.expect(!op.cpu.back().accepts, "the last kernel may not refuse");
}

void check_sample_types(const OpDef& op, Findings& f) {
  for (const Sample& sample : samples_of(op)) {
    const Findings::Place place(f, fmt::format("sample {}", sample.name));
    const auto c = make_case(op, sample);
    if (!f.expect(c->expected.size() == c->out.size(), "{} results, infer says {}",
                  c->expected.size(), c->out.size()))
      return;
    for (size_t i = 0; i < c->out.size(); ++i) {
      f.expect(static_cast<int64_t>(c->expected[i].size()) == num_elements(c->out[i].shape),
               "result {} has {} elements, infer says {}", i, c->expected[i].size(),
               to_string(c->out[i]));
    }
    const ir::Cost cost = cost_of(c->instance());
    f.expect(cost.flops >= 0 && cost.bytes >= 0, "the cost is negative");
    if (!op.shard) continue;
    // One letter per dim, operands and results separated as documented.
    const std::string shard = op.shard(c->instance());
    const std::string pattern = dims_pattern(c->in) + "->" + dims_pattern(c->out);
    std::string got;
    for (const char letter : shard) {
      if (letter == '!') continue;
      got += letter == ',' || letter == '-' || letter == '>' ? letter : 'x';
    }
    f.expect(got == pattern, "shard is '{}', expected a letter for each x of '{}'", shard, pattern);
  }
}

void check_definitions(const OpDef& op, Findings& f) {
  if (!op.reference || !op.decompose) return f.skip("has one definition");
  for (const Sample& sample : samples_of(op)) {
    const Findings::Place place(f, fmt::format("sample {}", sample.name));
    const auto c = make_case(op, sample);
    const std::vector<Tensor> other =
        evaluate_op(c->instance(), c->inputs, Definition::decomposition);
    if (!f.expect(other.size() == c->expected.size(), "the decomposition has {} results, not {}",
                  other.size(), c->expected.size()))
      return;
    for (size_t r = 0; r < other.size(); ++r) {
      if (!f.expect(other[r].size() == c->expected[r].size(),
                    "result {} of the decomposition has {} elements, not {}", r, other[r].size(),
                    c->expected[r].size()))
        return;
      const double allowed = 1e-10 * largest_of(c->expected[r], 1e-30);
      for (size_t i = 0; i < other[r].size(); ++i) {
        const double got = other[r][i], want = c->expected[r][i];
        if (got == want || (std::isnan(got) && std::isnan(want))) continue;
        if (!f.expect(std::abs(got - want) <= allowed,
                      "result {} element {}: the decomposition gives {}, the reference {}", r, i,
                      got, want))
          return;
      }
    }
  }
}

void check_cost(const OpDef& op, Findings& f) {
  if (&op == &ir::kInput) return f.skip("an input is no computation");
  const bool moves = std::ranges::find(kMoves, op.name) != std::end(kMoves);
  for (const Sample& sample : samples_of(op)) {
    const Findings::Place place(f, fmt::format("sample {}", sample.name));
    const auto c = make_case(op, sample);
    const ir::Cost cost = cost_of(c->instance());
    double results = 0, elements = 0, all = 0;
    for (const Type& type : c->out) {
      results += static_cast<double>(byte_size(type));
      elements += static_cast<double>(num_elements(type.shape));
    }
    for (const Type& type : c->in) all += static_cast<double>(byte_size(type));
    all += results;
    bool empty = false;
    for (const Type& type : c->in) empty |= num_elements(type.shape) == 0;
    f.expect(std::isfinite(cost.flops) && cost.flops >= 0, "flops are {}", cost.flops);
    f.expect(cost.bytes <= 2 * all, "{} bytes, more than each operand and result twice",
             cost.bytes);
    if (moves) {
      f.expect(cost.flops == 0, "{} flops, though it only moves data", cost.flops);
      continue;
    }
    if (elements == 0 || empty) continue;
    f.expect(cost.bytes >= results, "{} bytes, less than the results", cost.bytes);
    if (origin_of(op) == kInTree) f.expect(cost.flops > 0, "no flops");
  }
}

}  // namespace rhea::ops
