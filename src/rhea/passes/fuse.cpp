#include "rhea/passes/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "rhea/base/error.h"
#include "rhea/ir/op_def.h"
#include "rhea/ops/cluster/body.h"
#include "rhea/ops/cluster/cluster.h"
#include "rhea/ops/cluster/space.h"

namespace rhea::passes {
namespace {

constexpr size_t kMaxMembers = 64;
constexpr size_t kMaxOperands = 32;

// Nodes that run together, at the place of the last of them.
struct Group {
  std::vector<int32_t> members;  // ascending; without splat constants and broadcasts
};

class Fuser {
 public:
  explicit Fuser(const ir::Graph& graph) : graph_(graph), nodes_(graph.nodes()) {}

  ir::Graph run(const std::function<bool(const ir::Node&)>& alone) {
    for (const ir::Node& n : nodes_)
      parts_.push_back(alone && alone(n) ? ops::Part::none : ops::part_of(graph_, n));
    find_users();
    for (int32_t n = 0; n < size(); ++n) {
      if (!live_[at(n)] || !is_member(n)) continue;
      group_of_[at(n)] = static_cast<int32_t>(groups_.size());
      groups_.push_back({{n}});
      for (size_t i = 0; i < node(n).inputs.size(); ++i) {
        for (const ir::ValueId id : sources(n, i)) try_join(id.node, n);
      }
    }
    return rebuild();
  }

 private:
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  int32_t size() const { return static_cast<int32_t>(nodes_.size()); }
  const ir::Node& node(int32_t n) const { return nodes_[at(n)]; }
  int64_t bytes(int32_t n) const {
    int64_t sum = 0;
    for (const ir::Type& type : node(n).outputs) sum += ir::byte_size(type);
    return sum;
  }

  // Constants and broadcasts are copied into every cluster that reads them.
  bool is_spread(int32_t n) const { return parts_[at(n)] == ops::Part::spread; }
  bool is_member(int32_t n) const {
    const ops::Part part = parts_[at(n)];
    return part == ops::Part::rows ||
           (part == ops::Part::element && ir::num_elements(node(n).outputs[0].shape) > 0);
  }
  // Is operand i of member m a constant or broadcast that its cluster makes itself? Vectors and
  // tables of row ops are read from memory.
  bool absorbs(int32_t m, size_t i) const {
    if (!is_spread(node(m).inputs[i].node)) return false;
    if (parts_[at(m)] == ops::Part::element) return true;
    const char role = ops::role_of_operand(ops::row_plan(graph_, node(m)).roles, i);
    return role == 'r' || role == 'n';
  }

  // Constants and broadcasts take no place in the order of the graph: who reads a broadcast, reads
  // its operand.
  void find_users() {
    users_.resize(nodes_.size());
    readers_.resize(nodes_.size());
    group_of_.assign(nodes_.size(), -1);
    is_output_.assign(nodes_.size(), false);
    for (const auto& out : graph_.outputs()) is_output_[at(out.value.node)] = true;
    live_ = is_output_;
    for (int32_t n = size(); n-- > 0;) {
      if (node(n).op->has_side_effect) live_[at(n)] = true;
      if (!live_[at(n)]) continue;
      for (const ir::ValueId id : node(n).inputs) live_[at(id.node)] = true;
    }
    for (int32_t n = size(); n-- > 0;) {
      std::ranges::sort(users_[at(n)]);
      if (!live_[at(n)]) continue;
      for (const ir::ValueId id : node(n).inputs) {
        readers_[at(id.node)].push_back(n);
        auto& users = users_[at(id.node)];
        if (is_spread(n))
          users.insert(users.end(), users_[at(n)].begin(), users_[at(n)].end());
        else
          users.push_back(n);
        if (is_spread(n) && is_output_[at(n)]) is_output_[at(id.node)] = true;
      }
    }
  }

  static bool contains(const Group& group, int32_t n) {
    return std::ranges::binary_search(group.members, n);
  }
  // What member m has to find in memory or in its cluster for operand i.
  std::vector<ir::ValueId> sources(int32_t m, size_t i) const {
    const ir::ValueId id = node(m).inputs[i];
    return absorbs(m, i) ? node(id.node).inputs : std::vector{id};
  }

  // What the members of two groups read from outside both.
  std::set<ir::ValueId> operands(const Group& a, const Group& b) const {
    std::set<ir::ValueId> result;
    for (const Group* group : {&a, &b}) {
      for (const int32_t m : group->members) {
        for (size_t i = 0; i < node(m).inputs.size(); ++i) {
          for (const ir::ValueId id : sources(m, i)) {
            if (!contains(a, id.node) && !contains(b, id.node)) result.insert(id);
          }
        }
      }
    }
    return result;
  }

  // Can these members run in one cluster?
  bool fit_together(const Group& group) const {
    std::set<int32_t> nodes(group.members.begin(), group.members.end());
    for (const int32_t m : group.members) {
      for (size_t i = 0; i < node(m).inputs.size(); ++i) {
        if (absorbs(m, i)) nodes.insert(node(m).inputs[i].node);
      }
    }
    // A broadcast of a value of the group that would have to be in memory before the group runs.
    for (ir::ValueId id : operands(group, {})) {
      while (is_spread(id.node) && !node(id.node).inputs.empty()) id = node(id.node).inputs[0];
      if (contains(group, id.node)) return false;
    }
    std::string why;
    return ops::space_of(graph_, std::vector(nodes.begin(), nodes.end()), why).has_value();
  }

  // Moves the group of producer `p` to the place of `n`, into n's group, if that is right and pays.
  void try_join(int32_t p, int32_t n) {
    if (group_of_[at(p)] < 0 || group_of_[at(p)] == group_of_[at(n)]) return;
    Group& from = groups_[at(group_of_[at(p)])];
    Group& to = groups_[at(group_of_[at(n)])];
    if (from.members.size() + to.members.size() > kMaxMembers) return;
    int64_t saved = 0;
    for (const int32_t m : from.members) {
      bool needed_outside = is_output_[at(m)];
      for (const int32_t user : users_[at(m)]) {
        if (group_of_[at(user)] >= 0 &&
            (group_of_[at(user)] == group_of_[at(m)] || group_of_[at(user)] == group_of_[at(n)]))
          continue;
        if (user < n) return;  // needs the value before n runs
        needed_outside = true;
      }
      if (!needed_outside) saved += bytes(m);
    }
    const auto read = operands(from, to);
    if (read.size() > kMaxOperands) return;
    if (kept_longer(from, n) > saved) return;

    Group joined;
    std::ranges::merge(from.members, to.members, std::back_inserter(joined.members));
    if (!fit_together(joined)) return;
    for (const int32_t m : from.members) group_of_[at(m)] = group_of_[at(n)];
    from.members.clear();
    to = std::move(joined);
  }

  // Bytes that would live until `n` because the group runs there and not at its own place.
  int64_t kept_longer(const Group& group, int32_t n) const {
    int64_t sum = 0;
    const auto runs_between = [&](int32_t k) {
      return live_[at(k)] && node(k).op != &ir::kInput && !is_spread(k) &&
             group_of_[at(k)] != group_of_[at(n)];
    };
    int32_t k = group.members.back() + 1;
    while (k < n && !runs_between(k)) ++k;
    if (k >= n) return 0;
    for (const ir::ValueId id : operands(group, {})) {
      if (node(id.node).op == &ir::kInput) continue;
      const auto& users = users_[at(id.node)];
      if (users.empty() || users.back() >= n || is_output_[at(id.node)]) continue;
      sum += ir::byte_size(graph_.type(id));
    }
    return sum;
  }

  // A node alone is a cluster only if it reads splats or broadcasts, which then take no memory.
  bool becomes_cluster(const Group& group) const {
    if (group.members.size() > 1) return true;
    const int32_t m = group.members[0];
    for (size_t i = 0; i < node(m).inputs.size(); ++i) {
      if (absorbs(m, i)) return fit_together(group);
    }
    return false;
  }

  // The value in the new graph. Constants and broadcasts are made when somebody reads them.
  ir::Value moved(ir::ValueId id) {
    auto& made = map_[at(id.node)];
    if (made.empty() && is_spread(id.node)) made = copy(id.node);
    return made[at(id.output)];
  }
  std::vector<ir::Value> copy(int32_t n) {
    std::vector<ir::Value> inputs;
    for (const ir::ValueId id : node(n).inputs) inputs.push_back(moved(id));
    return to_.add_like(graph_, node(n), inputs);
  }

  ir::Graph rebuild() {
    map_.resize(nodes_.size());
    for (int32_t n = 0; n < size(); ++n) {
      const int32_t g = group_of_[at(n)];
      if (g >= 0 && becomes_cluster(groups_[at(g)])) {
        if (groups_[at(g)].members.back() == n) emit_cluster(groups_[at(g)]);
      } else if (live_[at(n)] && !is_spread(n)) {
        map_[at(n)] = copy(n);
      }
    }
    for (const auto& out : graph_.outputs()) to_.output(out.name, moved(out.value), out.donates);
    return std::move(to_);
  }

  void emit_cluster(const Group& group) {
    std::vector<ir::Value> operands;
    ir::Graph body;
    std::map<ir::ValueId, ir::Value> inside;
    const auto operand = [&](ir::ValueId id) {
      const auto [entry, added] = inside.try_emplace(id);
      if (added) {
        entry->second = body.input(fmt::format("{}", operands.size()), graph_.type(id));
        operands.push_back(moved(id));
      }
      return entry->second;
    };
    // Operands are numbered first, so they are all declared before the first statement.
    for (const int32_t m : group.members) {
      for (size_t i = 0; i < node(m).inputs.size(); ++i) {
        for (const ir::ValueId id : sources(m, i)) {
          if (!contains(group, id.node)) operand(id);
        }
      }
    }
    const auto value = [&](int32_t m, size_t i) {
      const ir::ValueId id = node(m).inputs[i];
      if (const auto found = inside.find(id); found != inside.end()) return found->second;
      std::vector<ir::Value> in;
      for (const ir::ValueId small : node(id.node).inputs) in.push_back(inside.at(small));
      return inside[id] = body.add_like(graph_, node(id.node), in)[0];
    };
    std::vector<ir::ValueId> results;
    for (const int32_t m : group.members) {
      std::vector<ir::Value> in;
      for (size_t i = 0; i < node(m).inputs.size(); ++i) in.push_back(value(m, i));
      const auto made = body.add_like(graph_, node(m), in);
      for (int32_t j = 0; j < static_cast<int32_t>(made.size()); ++j) {
        inside[{m, j}] = made[at(j)];
        if (!is_needed_outside({m, j}, group)) continue;
        body.output(fmt::format("{}", results.size()), made[at(j)]);
        results.push_back({m, j});
      }
    }
    const auto values = to_.add_as(graph_, node(group.members.back()), ops::kCluster, operands,
                                   {{"body", ops::cluster_body(body)}});
    for (size_t i = 0; i < results.size(); ++i) {
      auto& made = map_[at(results[i].node)];
      made.resize(node(results[i].node).outputs.size());
      made[at(results[i].output)] = values[i];
    }
  }

  bool is_needed_outside(ir::ValueId id, const Group& group) const {
    if (std::ranges::any_of(graph_.outputs(), [&](const auto& out) { return out.value == id; }))
      return true;
    return std::ranges::any_of(readers_[at(id.node)], [&](int32_t reader) {
      if (std::ranges::find(node(reader).inputs, id) == node(reader).inputs.end()) return false;
      if (!is_spread(reader)) return !contains(group, reader);
      return is_output_[at(reader)] || std::ranges::any_of(users_[at(reader)], [&](int32_t user) {
               return !contains(group, user);
             });
    });
  }

  const ir::Graph& graph_;
  const std::vector<ir::Node>& nodes_;
  std::vector<ops::Part> parts_;               // by node, as everything here
  std::vector<std::vector<int32_t>> users_;    // ascending; through constants and broadcasts
  std::vector<std::vector<int32_t>> readers_;  // as the graph has them
  std::vector<bool> is_output_, live_;
  std::vector<int32_t> group_of_;  // -1: not a member
  std::vector<Group> groups_;
  std::vector<std::vector<ir::Value>> map_;
  ir::Graph to_;
};

}  // namespace

ir::Graph fuse(const ir::Graph& graph) { return fuse_except(graph, nullptr); }

ir::Graph fuse_except(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& alone) {
  return Fuser(graph).run(alone);
}

}  // namespace rhea::passes
