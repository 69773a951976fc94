// For a given price lambda the best choice is a minimum cut. Variables, true on the source's side:
//   again(n)   node n is computed again                    costs lambda * cost(n)
//   needed(v)  backward has to have value v                costs bytes(v) unless again(node of v)
// needed(v) holds where backward reads v; again(n) implies needed(v) for the operands v of n.
// Max-flow by Dinic's algorithm with integer capacities.
#include "rhea/passes/remat_cut.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rhea::passes {
namespace {

constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max() / 4;

class FlowNetwork {
 public:
  explicit FlowNetwork(int32_t num_vertices) : out_(static_cast<size_t>(num_vertices)) {}

  void add_edge(int32_t from, int32_t to, int64_t capacity) {
    out_[static_cast<size_t>(from)].push_back(static_cast<int32_t>(edges_.size()));
    edges_.push_back({to, capacity});
    out_[static_cast<size_t>(to)].push_back(static_cast<int32_t>(edges_.size()));
    edges_.push_back({from, 0});
  }

  // The vertices on the source's side of a minimum cut.
  std::vector<bool> cut(int32_t source, int32_t sink) {
    while (find_levels(source, sink)) {
      next_.assign(out_.size(), 0);
      while (push(source, sink, kInfinite) > 0) {
      }
    }
    std::vector<bool> reached(out_.size());
    for (size_t v = 0; v < out_.size(); ++v) reached[v] = level_[v] >= 0;
    return reached;
  }

 private:
  struct Edge {
    int32_t to;
    int64_t left;
  };

  bool find_levels(int32_t source, int32_t sink) {
    level_.assign(out_.size(), -1);
    level_[static_cast<size_t>(source)] = 0;
    std::vector<int32_t> queue = {source};
    for (size_t q = 0; q < queue.size(); ++q) {
      const auto from = static_cast<size_t>(queue[q]);
      for (const int32_t e : out_[from]) {
        const Edge& edge = edges_[static_cast<size_t>(e)];
        if (edge.left == 0 || level_[static_cast<size_t>(edge.to)] >= 0) continue;
        level_[static_cast<size_t>(edge.to)] = level_[from] + 1;
        queue.push_back(edge.to);
      }
    }
    return level_[static_cast<size_t>(sink)] >= 0;
  }

  int64_t push(int32_t vertex, int32_t sink, int64_t flow) {
    if (vertex == sink) return flow;
    const auto from = static_cast<size_t>(vertex);
    for (size_t& at = next_[from]; at < out_[from].size(); ++at) {
      const auto e = static_cast<size_t>(out_[from][at]);
      const int32_t to = edges_[e].to;
      if (edges_[e].left == 0 || level_[static_cast<size_t>(to)] != level_[from] + 1) continue;
      const int64_t pushed = push(to, sink, std::min(flow, edges_[e].left));
      if (pushed == 0) continue;
      edges_[e].left -= pushed;
      edges_[e ^ 1].left += pushed;
      return pushed;
    }
    return 0;
  }

  std::vector<Edge> edges_;  // edge e and its reverse e ^ 1
  std::vector<std::vector<int32_t>> out_;
  std::vector<int32_t> level_;
  std::vector<size_t> next_;
};

class Solver {
 public:
  explicit Solver(const BlockProblem& problem) : problem_(problem) {
    int32_t vertex = 2;
    for (const auto& node : problem.nodes) {
      again_.push_back(vertex++);
      needed_.push_back(vertex);
      vertex += static_cast<int32_t>(node.results.size());
    }
    num_vertices_ = vertex;
  }

  BlockChoice solve(double lambda) const {
    constexpr int32_t source = 0, sink = 1;
    FlowNetwork network(num_vertices_);
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      const auto& node = problem_.nodes[n];
      if (!node.view)
        network.add_edge(again_[n], sink, std::llround(std::min(lambda * node.cost, 1e17)));
      for (size_t r = 0; r < node.results.size(); ++r) {
        const int32_t needed = needed_[n] + static_cast<int32_t>(r);
        if (node.results[r].read_by_backward) network.add_edge(source, needed, kInfinite);
        network.add_edge(needed, again_[n], node.view ? kInfinite : node.results[r].bytes);
      }
      for (const auto& [operand, result] : node.operands)
        network.add_edge(again_[n], needed_[static_cast<size_t>(operand)] + result, kInfinite);
    }
    const auto side = network.cut(source, sink);
    BlockChoice choice;
    for (const int32_t vertex : again_)
      choice.recompute.push_back(side[static_cast<size_t>(vertex)]);
    return measured(std::move(choice));
  }

  BlockChoice keep_all() const {
    BlockChoice choice;
    choice.recompute.assign(problem_.nodes.size(), false);
    std::vector<bool> read(problem_.nodes.size(), false);
    for (size_t n = problem_.nodes.size(); n-- > 0;) {
      const auto& node = problem_.nodes[n];
      bool wanted = read[n];
      for (const auto& result : node.results) wanted |= result.read_by_backward;
      if (!node.view || !wanted) continue;
      choice.recompute[n] = true;
      for (const auto& [operand, result] : node.operands) read[static_cast<size_t>(operand)] = true;
    }
    return measured(std::move(choice));
  }

 private:
  BlockChoice measured(BlockChoice choice) const {
    std::vector<std::vector<bool>> needed;
    for (const auto& node : problem_.nodes) {
      needed.emplace_back();
      for (const auto& result : node.results) needed.back().push_back(result.read_by_backward);
    }
    for (size_t n = problem_.nodes.size(); n-- > 0;) {
      if (!choice.recompute[n]) continue;
      choice.cost += problem_.nodes[n].cost;
      for (const auto& [operand, result] : problem_.nodes[n].operands)
        needed[static_cast<size_t>(operand)][static_cast<size_t>(result)] = true;
    }
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      if (choice.recompute[n]) continue;
      for (size_t r = 0; r < needed[n].size(); ++r) {
        if (needed[n][r]) choice.bytes += static_cast<double>(problem_.nodes[n].results[r].bytes);
      }
    }
    return choice;
  }

  const BlockProblem& problem_;
  std::vector<int32_t> again_, needed_;  // vertices by node; needed: of result 0
  int32_t num_vertices_ = 0;
};

// Adds the choices strictly between two of them on the lower hull.
void add_between(const Solver& solver, const BlockChoice& more_bytes,
                 const BlockChoice& fewer_bytes, std::vector<BlockChoice>& choices) {
  if (fewer_bytes.cost <= more_bytes.cost) return;
  const double lambda =
      (more_bytes.bytes - fewer_bytes.bytes) / (fewer_bytes.cost - more_bytes.cost);
  const BlockChoice middle = solver.solve(lambda);
  const double line = more_bytes.bytes + lambda * more_bytes.cost;
  const bool inside = middle.bytes < more_bytes.bytes && middle.bytes > fewer_bytes.bytes;
  if (!inside || middle.bytes + lambda * middle.cost >= line * (1 - 1e-6)) return;
  add_between(solver, more_bytes, middle, choices);
  choices.push_back(middle);
  add_between(solver, middle, fewer_bytes, choices);
}

}  // namespace

std::vector<BlockChoice> best_choices(const BlockProblem& problem) {
  const Solver solver(problem);
  std::vector<BlockChoice> choices = {solver.keep_all()};
  const BlockChoice least = solver.solve(0);
  if (least.bytes >= choices[0].bytes) return choices;
  const BlockChoice most = choices[0];
  add_between(solver, most, least, choices);
  choices.push_back(least);
  return choices;
}

}  // namespace rhea::passes
